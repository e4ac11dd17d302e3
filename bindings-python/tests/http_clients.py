"""Six HTTP clients under a layer, driven alike: each makes one request and tells what its user sees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests
from at_gateway import Drill

from reprieve import Trace, trace_of
from reprieve.integrations import aiohttp as for_aiohttp
from reprieve.integrations import httpx as for_httpx
from reprieve.integrations import httpx2 as for_httpx2
from reprieve.integrations import requests as for_requests


@dataclass
class Seen:
    """What the user of a client sees: a response, or what was raised."""

    status: int | None = None
    pieces: list[bytes] = field(default_factory=list)
    error: Exception | None = None
    trace: Trace | None = None

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def receipts(self) -> list[dict[str, Any]]:
        assert self.trace is not None
        return self.trace.receipts

    @property
    def kinds(self) -> list[str | None]:
        return [receipt["kind"] for receipt in self.receipts]

    @property
    def end(self) -> tuple[str, str | None]:
        assert self.trace is not None
        assert self.trace.ended is not None
        return self.trace.ended["outcome"], self.trace.ended["reason"]


@dataclass
class Ask:
    """One request, and how its answer is read."""

    url: str
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict)
    content: Any = None
    stream: bool = False
    #: Pieces that are read before the reader leaves.
    most: int | None = None
    timeout: float | None = 900.0


def ask(drill: Drill, marker: str, method: str = "GET", *, sse: bool = False, **fields: Any) -> Ask:
    """A request of the gateway that is answered with these faults, or with a stream of events."""
    fields["headers"] = {**drill.headers, **fields.get("headers", {})}
    return Ask(drill.address(marker, sse=sse), method, stream=sse, **fields)


#: Makes a request (`Ask`) under a policy with a layer's own options.
Sends = Callable[..., Seen]


@dataclass(frozen=True)
class Client:
    """One of the clients, under its layer."""

    name: str
    send: Sends

    def __call__(self, ask: Ask, policy: Any, **layer: Any) -> Seen:
        return self.send(ask, policy, **layer)


def _ask_httpx(module: Any, layers: Any) -> Sends:
    def ask(ask: Ask, policy: Any, **layer: Any) -> Seen:
        seen = Seen()
        wrapped = module.HTTPTransport(limits=module.Limits(max_connections=1))
        transport = layers.RetryTransport(policy, wrapped, **layer)
        with module.Client(transport=transport, timeout=module.Timeout(ask.timeout, pool=30.0)) as client:
            request = client.build_request(ask.method, ask.url, headers=ask.headers, content=ask.content)
            try:
                response = client.send(request, stream=ask.stream, follow_redirects=True)
                seen.status, seen.trace = response.status_code, trace_of(response)
                for piece in response.iter_bytes():
                    seen.pieces.append(piece)
                    if len(seen.pieces) == ask.most:
                        break
                response.close()
                seen.trace = trace_of(response)
            except Exception as error:
                seen.error, seen.trace = error, trace_of(error)
        return seen

    return ask


def _ask_httpx_async(module: Any, layers: Any) -> Sends:
    async def run(ask: Ask, policy: Any, layer: dict[str, Any]) -> Seen:
        seen = Seen()
        wrapped = module.AsyncHTTPTransport(limits=module.Limits(max_connections=1))
        transport = layers.AsyncRetryTransport(policy, wrapped, **layer)
        async with module.AsyncClient(transport=transport, timeout=module.Timeout(ask.timeout, pool=30.0)) as client:
            request = client.build_request(ask.method, ask.url, headers=ask.headers, content=_async(ask.content))
            try:
                response = await client.send(request, stream=ask.stream, follow_redirects=True)
                seen.status, seen.trace = response.status_code, trace_of(response)
                async for piece in response.aiter_bytes():
                    seen.pieces.append(piece)
                    if len(seen.pieces) == ask.most:
                        break
                await response.aclose()
                seen.trace = trace_of(response)
            except Exception as error:
                seen.error, seen.trace = error, trace_of(error)
        return seen

    return lambda ask, policy, **layer: asyncio.run(run(ask, policy, layer))


def _ask_requests(ask: Ask, policy: Any, **layer: Any) -> Seen:
    seen = Seen()
    with requests.Session() as session:
        wrapped = requests.adapters.HTTPAdapter(pool_maxsize=1, pool_block=True)
        session.mount("http://", for_requests.RetryAdapter(policy, wrapped, **layer))
        try:
            response = session.request(
                ask.method, ask.url, headers=ask.headers, data=ask.content, stream=ask.stream, timeout=ask.timeout
            )
            seen.status, seen.trace = response.status_code, trace_of(response)
            for piece in response.iter_content(1024):
                seen.pieces.append(piece)
                if len(seen.pieces) == ask.most:
                    break
            response.close()
            seen.trace = trace_of(response)
        except Exception as error:
            seen.error, seen.trace = error, trace_of(error)
    return seen


def _ask_aiohttp(ask: Ask, policy: Any, **layer: Any) -> Seen:
    async def run() -> Seen:
        seen = Seen()
        connector, total = aiohttp.TCPConnector(limit=1), None if ask.timeout is None else 4 * ask.timeout
        retrying = for_aiohttp.RetryMiddleware(policy, **layer)
        timeout = aiohttp.ClientTimeout(total=total)
        async with aiohttp.ClientSession(connector=connector, middlewares=(retrying,), timeout=timeout) as session:
            content = _async(ask.content)
            try:
                async with session.request(ask.method, ask.url, headers=ask.headers, data=content) as response:
                    seen.status, seen.trace = response.status, trace_of(response)
                    async for piece in response.content.iter_any():
                        seen.pieces.append(piece)
                        if len(seen.pieces) == ask.most:
                            break
                seen.trace = trace_of(response)
            except Exception as error:
                seen.error, seen.trace = error, trace_of(error)
        return seen

    return asyncio.run(run())


def _async(content: Any) -> Any:
    """A generator as an async one: async clients take no other."""
    if not isinstance(content, Iterator) or hasattr(content, "read"):
        return content

    async def pieces() -> Any:
        for piece in content:
            yield piece

    return pieces()


CLIENTS = [
    Client("httpx", _ask_httpx(httpx, for_httpx)),
    Client("httpx async", _ask_httpx_async(httpx, for_httpx)),
    Client("httpx2", _ask_httpx(httpx2, for_httpx2)),
    Client("httpx2 async", _ask_httpx_async(httpx2, for_httpx2)),
    Client("requests", _ask_requests),
    Client("aiohttp", _ask_aiohttp),
]


def every_client_but(*names: str) -> pytest.MarkDecorator:
    """Runs a test, or all of a class, once for each client but these."""
    clients = [client for client in CLIENTS if client.name not in names]
    return pytest.mark.parametrize("client", clients, ids=lambda client: client.name)


every_client = every_client_but()
