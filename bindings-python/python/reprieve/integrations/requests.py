"""Retries for requests: an adapter around the one that sends.

>>> import requests
>>> from reprieve import Policy
>>> from reprieve.integrations.requests import RetryAdapter
>>> session = requests.Session()
>>> for scheme in ("http://", "https://"):
...     session.mount(scheme, RetryAdapter(Policy(max_attempts=4, total_timeout=20)))
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import requests
import requests.adapters
import requests.utils
import urllib3

from .. import _driver
from ._http import (
    CHUNK,
    MAX_KEPT,
    Exchange,
    Held,
    Layer,
    RetryLayer,
    StatusFailure,
    at_most,
    attempt_here,
    refuse_retries,
)

if TYPE_CHECKING:
    from ._chain import Rules

__all__ = ["RetryAdapter", "StatusFailure"]


class RetryAdapter(RetryLayer, requests.adapters.BaseAdapter):
    """Sends requests under a policy, through the adapter that it wraps (by default a new `HTTPAdapter`).

    What holds for `reprieve.integrations.httpx.RetryTransport` holds here: a failing status is a failure of the
    attempt, and the last response is what the call ends with; `methods`, `idempotency_header` and `max_body`; timeouts
    are only lowered; each redirect is a request of its own. What differs:

    - Without `stream=True` the body is read before the attempt counts, whatever its length, and sent for anew when it
      breaks. With it, only the first byte is waited for, of a model's stream of events as well.
    - A timeout of requests bounds one wait for bytes, and nothing can interrupt it: an attempt may take longer than its
      timeout, by as much as the server goes on sending.

    Raises `ConfigError` where the wrapped adapter retries by itself: its `max_retries` has to be 0.
    """

    def __init__(
        self,
        policy: Rules,
        wrapped: requests.adapters.BaseAdapter | None = None,
        *,
        methods: Iterable[str] = (),
        idempotency_header: str | None = None,
        max_body: int = MAX_KEPT,
    ) -> None:
        super().__init__()
        self._layer = Layer(policy, methods, idempotency_header, max_body)
        self._wrapped = wrapped or requests.adapters.HTTPAdapter()
        refuse_retries(self._wrapped, getattr(getattr(self._wrapped, "max_retries", None), "total", 0))

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Sends the request, as often as the policy says."""
        layer = self._layer
        options: dict[str, Any] = {"verify": verify, "cert": cert, "proxies": proxies}
        exchange = layer.exchange(request.method or "GET", request.headers)
        try:
            _keep(layer, request)

            def once(*, request: requests.PreparedRequest) -> Any:
                _close(exchange)
                if _keep(layer, request) and exchange.call.attempts > 1:
                    requests.utils.rewind_body(request)
                response = self._wrapped.send(request, stream, timeout=_lowered(timeout), **options)
                return _read(layer, exchange, response, stream)

            return exchange.conclude(_driver.drive(exchange, once, (), {"request": request}))  # type: ignore[no-any-return]
        except BaseException:
            exchange.close()
            raise
        finally:
            _close(exchange)

    def close(self) -> None:
        """Closes the wrapped adapter."""
        self._wrapped.close()


def _lowered(timeout: Any) -> Any:
    """The request's timeout, lowered to what this attempt may take."""
    attempt = attempt_here()
    if isinstance(timeout, tuple):
        own = list(cast("tuple[Any, Any]", timeout))
    elif hasattr(timeout, "connect_timeout"):  # urllib3's own
        own = [timeout.connect_timeout, timeout.read_timeout]
    else:
        own = [timeout, timeout]
    seconds = (value if isinstance(value, (int, float)) else None for value in own)
    return tuple(map(at_most, seconds, (attempt.connect_timeout, attempt.read_timeout)))


def _keep(layer: Layer, request: requests.PreparedRequest) -> bool:
    """Whether the body has to be rewound for another attempt. One that can be sent once is kept in memory; raises
    `ConfigError` where it is too long for that."""
    body: Any = request.body
    if body is None or isinstance(body, (bytes, str)):
        return False
    if isinstance(getattr(request, "_body_position", None), int):
        return True
    held = Held(layer.max_body)
    for chunk in _chunks(body):
        if held.take(chunk.encode() if isinstance(chunk, str) else chunk):
            raise layer.too_long(request.method or "GET", request.url)
    request.body = held.whole
    return False


def _chunks(body: Any) -> Iterator[Any]:
    if not hasattr(body, "read"):
        return iter(body)
    return iter(lambda: body.read(CHUNK), b"")


def _read(layer: Layer, exchange: Exchange, response: requests.Response, stream: bool) -> requests.Response:
    """The response with as much of its body read as the attempt has to see; raises a failing status."""
    failing = response.status_code >= 400
    most = layer.to_read(response.status_code, {}) if stream else None
    exchange.in_body = not failing
    try:
        more = _read_ahead(response, most)
    except BaseException:
        response.close()
        raise
    exchange.opened(response, failing, more)
    if failing:
        body = response._content if isinstance(response._content, bytes) else None
        raise StatusFailure(response, response.status_code, response.headers.items(), body)
    if exchange.open:
        _guard(response, exchange)
    return response


def _read_ahead(response: Any, most: int | None) -> bool:
    """Reads the body, all of it or up to a limit; whether there is more to come."""
    if most == 0:
        return _first_byte(response)
    held, chunks = Held(most, attempt_here()), response.iter_content(CHUNK)
    if any(held.take(chunk) for chunk in chunks):
        whole: Iterator[bytes] = chain(held.chunks, chunks)

        def stream(*_args: object, **_options: object) -> Iterator[bytes]:
            return whole

        response.raw.stream = stream
        return True
    response._content = held.whole
    response.raw = _read_already(response)
    return False


def _read_already(response: Any) -> Any:
    """What stands for `raw` once the body was read and decompressed, for those who read from there."""
    headers = {name: value for name, value in response.headers.items() if name.lower() != "content-encoding"}
    known: dict[str, Any] = {"status": response.status_code, "reason": response.reason, "preload_content": False}
    cookies = getattr(response.raw, "_original_response", None)
    return urllib3.HTTPResponse(io.BytesIO(response._content), headers, original_response=cookies, **known)


def _first_byte(response: Any) -> bool:
    """Waits for the first byte of the body and leaves it where it is; whether there is any."""
    source = getattr(getattr(response.raw, "_fp", None), "fp", None)
    if source is None:
        return False
    try:
        any_byte = source.peek(1)
    except TimeoutError as error:
        raise requests.exceptions.ReadTimeout(error, request=response.request) from error
    except OSError as error:
        raise requests.exceptions.ConnectionError(error, request=response.request) from error
    if not any_byte and (response.raw.chunked or response.raw.length_remaining):
        raise requests.exceptions.ChunkedEncodingError("the connection was closed before the body began")
    return True


def _guard(response: Any, exchange: Exchange) -> None:
    """Has the body report how it ends. All reading of requests goes through `raw.stream`."""
    raw, plain_stream, plain_close = response.raw, response.raw.stream, response.raw.close
    reading = False

    def stream(*args: Any, **options: Any) -> Iterator[bytes]:
        nonlocal reading
        reading = True
        try:
            for chunk in plain_stream(*args, **options):
                reading = False
                yield exchange.deliver(chunk)
                reading = True
        except Exception as error:
            if (end := exchange.broke(error)) is error:
                raise
            raise end from error
        exchange.ended()

    def close() -> None:
        plain_close()
        if not reading:  # urllib3 closes a response that breaks before it raises
            exchange.left()

    raw.stream, raw.close = stream, close


def _close(exchange: Exchange) -> None:
    """Closes the response of the attempt before, which nobody gets: its connection goes back."""
    response = exchange.forgotten()
    if response is not None:
        response.close()
