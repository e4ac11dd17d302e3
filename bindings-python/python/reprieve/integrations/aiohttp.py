"""Retries for aiohttp's client (3.12 and later): a middleware.

>>> import aiohttp
>>> from reprieve import Policy
>>> from reprieve.integrations.aiohttp import RetryMiddleware
>>> async def main() -> None:
...     retrying = RetryMiddleware(Policy(max_attempts=4, total_timeout=20))
...     async with aiohttp.ClientSession(middlewares=(retrying,)) as session:
...         await session.get("http://127.0.0.1:1")
"""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import aiohttp
from aiohttp import payload as payloads
from aiohttp.base_protocol import BaseProtocol

from .. import _aio
from .._trace import attach, attached
from ._http import MAX_KEPT, Exchange, Held, Layer, StatusFailure, is_timeout

if TYPE_CHECKING:
    from ._chain import Rules

__all__ = ["RetryMiddleware", "StatusFailure"]

Handler = Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]]


class RetryMiddleware:
    """A middleware that sends requests under a policy. Put it first, so that what others do is done for each attempt.

    What holds for `reprieve.integrations.httpx.RetryTransport` holds here: a failing status is a failure of the
    attempt, and the last response is what the call ends with; `methods`, `idempotency_header` and `max_body`; each
    redirect is a request of its own. What differs:

    - A middleware does not see aiohttp's timeouts: an attempt is cut at its own, and `ClientTimeout.total` still bounds
      all of them together. `connect_timeout` of a policy has no effect; `ClientTimeout.sock_connect` has.
    - A cut attempt is seen as aiohttp's `ServerTimeoutError`.
    - That a body broke after its first bytes is recorded when the response is closed.
    - aiohttp repeats an idempotent request by itself once when a connection breaks, middleware and all. Here it does
      not: that would double every attempt.
    """

    def __init__(
        self,
        policy: Rules,
        *,
        methods: Iterable[str] = (),
        idempotency_header: str | None = None,
        max_body: int = MAX_KEPT,
    ) -> None:
        self._layer = Layer(policy, methods, idempotency_header, max_body)
        #: What a request has given up with, by what aiohttp keeps when it repeats one.
        self._gave_up: WeakKeyDictionary[Any, Exception] = WeakKeyDictionary()

    async def __call__(self, request: aiohttp.ClientRequest, handler: Handler) -> aiohttp.ClientResponse:
        """Sends the request, as often as the policy says."""
        timer = getattr(request, "_timer", None)
        if timer in self._gave_up:
            raise self._gave_up[timer]
        try:
            return await _send(self._layer, request, handler)
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            if timer is not None:
                self._gave_up[timer] = error
            raise


async def _send(layer: Layer, request: aiohttp.ClientRequest, handler: Handler) -> aiohttp.ClientResponse:
    exchange = layer.exchange(request.method, request.headers)
    try:
        await _keep(layer, request)

        async def once(*, request: aiohttp.ClientRequest) -> aiohttp.ClientResponse:
            _close(exchange)
            await _keep(layer, request)
            response: aiohttp.ClientResponse = await _read(layer, exchange, await handler(request))
            return response

        end = await _aio.drive(exchange, once, (), {"request": request})
        return _told(exchange.conclude(end))
    except BaseException as error:
        exchange.close()
        if is_timeout(error):
            raise aiohttp.ServerTimeoutError(str(error)) from error
        raise
    finally:
        _close(exchange)


# --- the request -----------------------------------------------------------------------------------------------------


async def _keep(layer: Layer, request: aiohttp.ClientRequest) -> None:
    """Keeps a body that can be sent once; raises `ConfigError` where it is too long for that."""
    body: Any = request.body
    if _sent_once(body):
        kept = _Kept(layer.max_body)
        try:
            await body.write(kept)
        except _TooLong:
            raise layer.too_long(request.method, request.url) from None
        await request.update_body(kept.held.whole)


def _sent_once(body: Any) -> bool:
    if isinstance(body, aiohttp.MultipartWriter):
        return any(_sent_once(part[0]) for part in body._parts)
    if isinstance(body, payloads.IOBasePayload):
        value: Any = body._value
        return value.seekable() is False
    return isinstance(body, payloads.AsyncIterablePayload)


class _TooLong(Exception):
    """More was written than is kept."""


class _Kept:
    """Where a payload is written to instead of a connection."""

    def __init__(self, most: int) -> None:
        self.held = Held(most)

    async def write(self, chunk: bytes) -> None:
        if self.held.take(bytes(chunk)):
            raise _TooLong


# --- the response ----------------------------------------------------------------------------------------------------


async def _read(layer: Layer, exchange: Exchange, response: Any) -> Any:
    """The response with as much of its body read as the attempt has to see; raises a failing status."""
    if response.status < 200:  # a WebSocket: there is no body
        return response
    held = layer.held(exchange, response.status, response.headers, plain=True)
    enough, exchange.in_body = False, response.status < 400
    try:
        while not enough and (chunk := await response.content.readany()):
            enough = held.take(chunk) and not response.content.at_eof()
    except BaseException:
        response.close()
        raise
    _put_back(response, held.whole, enough)
    fault = held.fault(more=enough)
    failing = response.status >= 400 or fault is not None
    exchange.opened(response, failing, enough)
    if failing:
        raise StatusFailure(response, response.status, response.headers.items(), held.whole, fault)
    if enough:
        exchange.delivered = 1
        _guard(response, exchange)
    return response


def _put_back(response: Any, read: bytes, more: bool) -> None:
    """Leaves the body as if nobody had read it."""
    if more:
        with warnings.catch_warnings():  # what takes its place is yet to come
            warnings.simplefilter("ignore", DeprecationWarning)
            response.content.unread_data(read)
    elif read:
        loop = response._loop
        content = aiohttp.StreamReader(BaseProtocol(loop), 2**16, loop=loop)
        content.feed_data(read)
        content.feed_eof()
        response.content = content


def _guard(response: Any, exchange: Exchange) -> None:
    """Has the body report how it ends: whole when all of it has come, else when the response is closed."""

    def reporting(plain: Callable[[], Any]) -> Callable[[], Any]:
        def close() -> Any:
            error = response.content.exception()
            result = plain()
            if isinstance(error, Exception):
                exchange.broke(error)
            else:
                exchange.left()
            return result

        return close

    response.content.on_eof(exchange.ended)
    response.close, response.release = reporting(response.close), reporting(response.release)


def _told(response: Any) -> aiohttp.ClientResponse:
    """Has what `raise_for_status` raises lead to the call: aiohttp's error knows no response."""
    plain = response.raise_for_status

    def raise_for_status() -> None:
        try:
            plain()
        except aiohttp.ClientResponseError as error:
            if (trace := attached(response)) is not None:
                attach(error, trace)
            raise

    response.raise_for_status = raise_for_status
    return cast("aiohttp.ClientResponse", response)


def _close(exchange: Exchange) -> None:
    """Closes the response of the attempt before, which nobody gets: its connection goes back."""
    response = exchange.forgotten()
    if response is not None:
        response.release()
