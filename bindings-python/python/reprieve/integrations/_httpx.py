"""The layer for httpx and httpx2, which differ in their names alone: what is read ahead, how a body is sent again, and
the stream that reports how it ends. The client's own classes come in as its module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

from .. import _aio, _driver
from .._errors import ConfigError
from .._reading import MAX_BODY, safely
from ._http import CHUNK, Exchange, Held, Layer, StatusFailure, at_most, attempt_here, is_timeout, refuse_retries

# The client's objects are those of either module: `Any` stands for them here, and the transports name them.


class Names(NamedTuple):
    """What differs between the clients: the classes that their own checks insist on."""

    module: Any
    sent: type
    received: type
    received_async: type


def names_of(module: ModuleType) -> Names:
    """The names of this client."""
    client: Any = module
    plain, asynchronous = client.SyncByteStream, client.AsyncByteStream
    kinds = (_Sent, plain), (_Received, plain), (_ReceivedAsync, asynchronous)
    return Names(client, *(type(bases[0].__name__, bases, {}) for bases in kinds))


def checked(wrapped: Any) -> Any:
    """The transport, which must not try again by itself."""
    refuse_retries(wrapped, getattr(getattr(wrapped, "_pool", None), "_retries", 0))
    return wrapped


def send(names: Names, layer: Layer, request: Any, wrapped: Callable[[Any], Any]) -> Any:
    """One request of a plain client, under its policy."""
    _check_client(names, request)
    exchange = layer.exchange(request.method, request.headers)
    try:
        request.stream = _again(names, layer, request)

        original = request

        def once(*, request: Any) -> Any:
            _close(exchange)
            if request is not original:  # `prepare` or `repair` has made another
                request.stream = _again(names, layer, request)
            with _timed(request):
                response = wrapped(request)
            return _read(names, layer, exchange, response)

        end = _driver.drive(exchange, once, (), {"request": request})
        return exchange.conclude(end)
    except BaseException:
        exchange.close()
        raise
    finally:
        _close(exchange)


async def send_async(names: Names, layer: Layer, request: Any, wrapped: Callable[[Any], Awaitable[Any]]) -> Any:
    """One request of an async client, under its policy."""
    _check_client(names, request)
    exchange = layer.exchange(request.method, request.headers)
    try:
        request.stream = await _again_async(names, layer, request)

        original = request

        async def once(*, request: Any) -> Any:
            await _close_async(exchange)
            if request is not original:
                request.stream = await _again_async(names, layer, request)
            with _timed(request):
                response = await wrapped(request)
            return await _read_async(names, layer, exchange, response)

        return exchange.conclude(await _aio.drive(exchange, once, (), {"request": request}))
    except BaseException as error:
        exchange.close()
        if is_timeout(error):
            raise names.module.ReadTimeout(str(error), request=request) from error
        raise
    finally:
        await _close_async(exchange)


# --- the request -----------------------------------------------------------------------------------------------------


def _check_client(names: Names, request: Any) -> None:
    """httpx and httpx2 are alike enough to be confused, and not enough for one to understand the other's answers."""
    if not isinstance(request, names.module.Request):
        own, other = names.module.__name__, type(request).__module__.split(".")[0]
        allowed = f"a client of {own}; for this one import the transport from reprieve.integrations.{other}"
        raise ConfigError("client", f"one of {other}", allowed)


@contextmanager
def _timed(request: Any) -> Generator[None]:
    """The client's timeouts, lowered to what this attempt may take."""
    attempt, before = attempt_here(), request.extensions
    own = before.get("timeout", {})
    bounds = {"connect": attempt.connect_timeout, "read": attempt.read_timeout, "write": attempt.timeout}
    lowered = {name: at_most(own.get(name), most) for name, most in (*bounds.items(), ("pool", attempt.timeout))}
    request.extensions = {**before, "timeout": {**own, **lowered}}
    try:
        yield
    finally:
        request.extensions = before


def _again(names: Names, layer: Layer, request: Any) -> Any:
    """The request's body in a form that can be sent again; raises `ConfigError` where there is none."""
    stream = request.stream
    file = getattr(stream, "_stream", None)
    if _repeats(names, stream):
        return stream
    if _rewinds(file):
        return names.sent(file)
    held = Held(layer.max_body)
    for chunk in stream:
        if held.take(chunk):
            raise layer.too_long(request.method, request.url)
    return names.module.ByteStream(held.whole)


async def _again_async(names: Names, layer: Layer, request: Any) -> Any:
    stream = request.stream
    if _repeats(names, stream):
        return stream
    held = Held(layer.max_body)
    async for chunk in stream:
        if held.take(chunk):
            raise layer.too_long(request.method, request.url)
    return names.module.ByteStream(held.whole)


def _repeats(names: Names, stream: Any) -> bool:
    """The client sends it anew by itself: bytes, or a form whose files it rewinds."""
    if isinstance(stream, (names.module.ByteStream, names.sent)):
        return True
    fields = getattr(stream, "fields", None)
    files = [getattr(field, "file", b"") for field in fields or ()]
    return fields is not None and all(isinstance(file, (bytes, str)) or _rewinds(file) for file in files)


def _rewinds(file: Any) -> bool:
    return callable(getattr(file, "seek", None)) and safely(lambda: file.seekable()) is True


class _Sent:
    """A file, sent from where it stood."""

    def __init__(self, file: Any) -> None:
        self._file, self._start = file, file.tell()

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(self._start)
        while chunk := self._file.read(CHUNK):
            yield chunk


# --- the response ----------------------------------------------------------------------------------------------------


def _read(names: Names, layer: Layer, exchange: Exchange, response: Any) -> Any:
    """The response with as much of its body read as the attempt has to see."""
    held = _held(layer, exchange, response)
    chunks: Any = iter(response.stream)
    exchange.in_body = response.status_code < 400
    try:
        enough = any(held.take(chunk) for chunk in chunks if chunk)
    except BaseException as error:
        if response.status_code < 400 or not isinstance(error, Exception):
            response.stream.close()
            raise
        enough, chunks = True, _Rest(error)  # the status is known, whatever becomes of its body
    if not enough:
        response.stream.close()
    return _taken(names, exchange, response, held, enough, names.received, chunks)


async def _read_async(names: Names, layer: Layer, exchange: Exchange, response: Any) -> Any:
    held = _held(layer, exchange, response)
    chunks: Any = aiter(response.stream)
    exchange.in_body = response.status_code < 400
    enough = False
    try:
        async for chunk in chunks:
            if chunk and held.take(chunk):
                enough = True
                break
    except BaseException as error:
        if response.status_code < 400 or not isinstance(error, Exception):
            await response.stream.aclose()
            raise
        enough, chunks = True, _Rest(error)
    if not enough:
        await response.stream.aclose()
    return _taken(names, exchange, response, held, enough, names.received_async, chunks)


def _held(layer: Layer, exchange: Exchange, response: Any) -> Held:
    headers = response.headers
    return layer.held(exchange, response.status_code, headers, plain="content-encoding" not in headers)


def _taken(
    names: Names, exchange: Exchange, response: Any, held: Held, enough: bool, received: type, chunks: Any
) -> Any:
    """Puts what was read back in front of what is yet to come, and tells a failing status."""
    fault = held.fault(more=enough)
    failing = response.status_code >= 400 or fault is not None
    exchange.opened(response, failing, enough)
    if enough:
        response.stream = received(held.chunks, chunks, response.stream, exchange)
    else:
        response.stream = names.module.ByteStream(held.whole)
    if failing:
        headers = response.headers.multi_items()
        body = None if fault else _decoded(names, response, held.whole)
        raise StatusFailure(response, response.status_code, headers, body, fault)
    return response


def _decoded(names: Names, response: Any, raw: bytes) -> bytes | None:
    """A body without its compression, as far as that is whole."""
    whole: Any = safely(lambda: names.module.Response(200, headers=response.headers, content=raw).content)
    return whole[:MAX_BODY] if isinstance(whole, bytes) else None


class _Rest:
    """What is left of a body that broke: the error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __iter__(self) -> Iterator[bytes]:
        raise self._error

    def __aiter__(self) -> AsyncIterator[bytes]:
        raise self._error


class _Received:
    """A response's body: what was read ahead, and what is yet to come."""

    def __init__(self, held: list[bytes], chunks: Any, source: Any, exchange: Exchange) -> None:
        self._held, self._chunks, self._source, self._exchange = held, chunks, source, exchange

    def __iter__(self) -> Iterator[bytes]:
        exchange = self._exchange
        try:
            for part in (self._held, self._chunks):
                for chunk in part:
                    yield exchange.deliver(chunk)
        except Exception as error:
            if (end := exchange.broke(error)) is error:
                raise
            raise end from error
        exchange.ended()

    def close(self) -> None:
        self._source.close()
        self._exchange.left()


class _ReceivedAsync(_Received):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange = self._exchange
        try:
            for chunk in self._held:
                yield exchange.deliver(chunk)
            async for chunk in self._chunks:
                yield exchange.deliver(chunk)
        except Exception as error:
            if (end := exchange.broke(error)) is error:
                raise
            raise end from error
        exchange.ended()

    async def aclose(self) -> None:
        await self._source.aclose()
        self._exchange.left()


def _close(exchange: Exchange) -> None:
    """Closes the response of the attempt before, which nobody gets: its connection goes back."""
    response = exchange.forgotten()
    if response is not None:
        response.stream.close()


async def _close_async(exchange: Exchange) -> None:
    response = exchange.forgotten()
    if response is not None:
        await response.stream.aclose()
