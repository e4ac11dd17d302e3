"""Retries for httpx2: a transport around the one that sends.

>>> import httpx2
>>> from reprieve import Policy
>>> from reprieve.integrations.httpx2 import RetryTransport
>>> client = httpx2.Client(transport=RetryTransport(Policy(max_attempts=4, total_timeout=20)))
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import httpx2

from . import _httpx
from ._chain import Rules
from ._http import MAX_KEPT, Layer, RetryLayer, StatusFailure

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AsyncRetryTransport", "RetryTransport", "StatusFailure"]

NAMES = _httpx.names_of(httpx2)


class RetryTransport(RetryLayer, httpx2.BaseTransport):
    """Sends requests under a policy, through the transport that it wraps (by default a new `HTTPTransport`; what a
    client would have given its own, such as `verify` or `limits`, is given to that one).

    See `reprieve.integrations.httpx.RetryTransport`, which this is for httpx2. It fits the clients of openai from 3.0
    and anthropic from 2.0, whose own retries are to be off:

        openai.OpenAI(http_client=httpx2.Client(transport=RetryTransport(policy, methods=["POST"])), max_retries=0)
    """

    def __init__(
        self,
        policy: Rules,
        wrapped: httpx2.BaseTransport | None = None,
        *,
        methods: Iterable[str] = (),
        idempotency_header: str | None = None,
        max_body: int = MAX_KEPT,
    ) -> None:
        self._layer = Layer(policy, methods, idempotency_header, max_body)
        self._wrapped: Any = _httpx.checked(wrapped or httpx2.HTTPTransport())

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends the request, as often as the policy says."""
        response = _httpx.send(NAMES, self._layer, request, self._wrapped.handle_request)
        return cast("httpx2.Response", response)

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


class AsyncRetryTransport(RetryLayer, httpx2.AsyncBaseTransport):
    """The same for an `AsyncClient`. Its attempts are cut at their timeout, which the client then sees as its own
    `ReadTimeout`.

    >>> client = httpx2.AsyncClient(transport=AsyncRetryTransport("interactive"))
    """

    def __init__(
        self,
        policy: Rules,
        wrapped: httpx2.AsyncBaseTransport | None = None,
        *,
        methods: Iterable[str] = (),
        idempotency_header: str | None = None,
        max_body: int = MAX_KEPT,
    ) -> None:
        self._layer = Layer(policy, methods, idempotency_header, max_body)
        self._wrapped: Any = _httpx.checked(wrapped or httpx2.AsyncHTTPTransport())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends the request, as often as the policy says."""
        response = await _httpx.send_async(NAMES, self._layer, request, self._wrapped.handle_async_request)
        return cast("httpx2.Response", response)

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
