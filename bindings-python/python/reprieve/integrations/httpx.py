"""Retries for httpx: a transport around the one that sends.

>>> import httpx
>>> from reprieve import Policy
>>> from reprieve.integrations.httpx import RetryTransport
>>> client = httpx.Client(transport=RetryTransport(Policy(max_attempts=4, total_timeout=20)))
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import httpx

from . import _httpx
from ._chain import Rules
from ._http import MAX_KEPT, Layer, RetryLayer, StatusFailure

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AsyncRetryTransport", "RetryTransport", "StatusFailure"]

NAMES = _httpx.names_of(httpx)


class RetryTransport(RetryLayer, httpx.BaseTransport):
    """Sends requests under a policy, through the transport that it wraps (by default a new `HTTPTransport`; what a
    client would have given its own, such as `verify` or `limits`, is given to that one).

    - A response with a failing status (from 400) is a failure of its attempt. When the call gives up, the last response
      is what the client gets, as without this layer; `trace_of(response)` tells what was tried. Exceptions are raised
      as themselves, and `bind(on_give_up="wrapped")` turns both into `RetryExhausted`.
    - `methods` names methods that may be sent again beside the idempotent ones (GET, HEAD, PUT, DELETE, OPTIONS,
      TRACE, QUERY): `methods=["POST"]` for a model's API. A request with an `Idempotency-Key` header may always, and
      `idempotency_header` names the header that every request gets its call's key in. Any other is sent again only
      after what cannot have had an effect, such as a refused connection or a 429. A policy with
      `side_effects="unsafe"` has the last word.
    - A body that can be sent once is kept, up to `max_body` bytes (1 MiB); a longer one raises `ConfigError` before
      anything is sent.
    - A body that announces its length, up to the same limit, is read before the attempt counts, and sent for anew when
      it breaks; of any other the first bytes are, of a model's stream of events everything before the first content,
      and where `stream.mode` is `buffered`, all of it. One that breaks later ends its call with `already_delivered` and
      the client's own exception.
    - The functions of a call are given the client's own objects: `check` the response (whose body it reads with
      `response.read()`), `prepare` and `repair` the request as `{"request": request}`, to change it or to answer with
      another. A policy with several targets needs a `prepare`, which sends a request to its target.
    - The client's timeouts are lowered to the time left, never raised. Each redirect is a request of its own.

    Raises `ConfigError` for a policy that a request cannot follow (several targets without `prepare`, or the stream
    modes `restart` and `resume`), and for a transport with retries of its own.
    """

    def __init__(
        self,
        policy: Rules,
        wrapped: httpx.BaseTransport | None = None,
        *,
        methods: Iterable[str] = (),
        idempotency_header: str | None = None,
        max_body: int = MAX_KEPT,
    ) -> None:
        self._layer = Layer(policy, methods, idempotency_header, max_body)
        self._wrapped: Any = _httpx.checked(wrapped or httpx.HTTPTransport())

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends the request, as often as the policy says."""
        response = _httpx.send(NAMES, self._layer, request, self._wrapped.handle_request)
        return cast("httpx.Response", response)

    def close(self) -> None:
        """Closes the wrapped transport."""
        self._wrapped.close()

    def __enter__(self) -> Self:
        self._wrapped.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._wrapped.__exit__(exc_type, exc_value, traceback)


class AsyncRetryTransport(RetryLayer, httpx.AsyncBaseTransport):
    """The same for an `AsyncClient`. Its attempts are cut at their timeout, which the client then sees as its own
    `ReadTimeout`.

    >>> client = httpx.AsyncClient(transport=AsyncRetryTransport("interactive"))
    """

    def __init__(
        self,
        policy: Rules,
        wrapped: httpx.AsyncBaseTransport | None = None,
        *,
        methods: Iterable[str] = (),
        idempotency_header: str | None = None,
        max_body: int = MAX_KEPT,
    ) -> None:
        self._layer = Layer(policy, methods, idempotency_header, max_body)
        self._wrapped: Any = _httpx.checked(wrapped or httpx.AsyncHTTPTransport())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends the request, as often as the policy says."""
        response = await _httpx.send_async(NAMES, self._layer, request, self._wrapped.handle_async_request)
        return cast("httpx.Response", response)

    async def aclose(self) -> None:
        """Closes the wrapped transport."""
        await self._wrapped.aclose()

    async def __aenter__(self) -> Self:
        await self._wrapped.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self._wrapped.__aexit__(exc_type, exc_value, traceback)
