"""The HTTP layers over other transports than the clients' own: mocks, adapters, answers that break."""

from __future__ import annotations

import asyncio
import io
import json
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import httpx
import pytest
import requests
import trio
from at_gateway import NEVER, OFTEN, Drill, cut_then
from failing import at_once, still

from reprieve import Policy, testing, trace_of
from reprieve.integrations.aiohttp import RetryMiddleware
from reprieve.integrations.httpx import AsyncRetryTransport, RetryTransport
from reprieve.integrations.requests import RetryAdapter


def plays(*statuses: int) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    """A transport that answers these, and the requests that it was sent."""
    sent: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(statuses[min(len(sent), len(statuses)) - 1], headers={"retry-after": "3"}, text="told")

    return httpx.MockTransport(handle), sent


class TestOtherTransports:
    def test_a_mock_on_a_virtual_clock(self) -> None:
        transport, sent = plays(503, 503, 200)
        with testing.virtual() as clock, httpx.Client(transport=RetryTransport(still(), transport)) as client:
            assert client.get("http://x/").text == "told"
        assert (len(sent), [round(wait) for wait in clock.sleeps]) == (3, [3, 3])

    def test_the_same_async(self) -> None:
        transport, sent = plays(503, 200)

        async def main() -> str:
            async with httpx.AsyncClient(transport=AsyncRetryTransport(still(), transport)) as client:
                return (await client.get("http://x/")).text

        with testing.virtual():
            assert asyncio.run(main()) == "told"
        assert len(sent) == 2

    def test_under_trio(self, drill: Drill) -> None:
        async def main(policy: Policy, marker: str) -> int:
            async with httpx.AsyncClient(transport=AsyncRetryTransport(policy)) as client:
                return (await client.get(drill.address(marker), headers=drill.headers)).status_code

        assert trio.run(main, at_once(), "503,ok") == 200
        assert drill.played() == ["503", "ok"]
        assert trio.run(main, at_once(attempt_timeout=0.3, max_attempts=OFTEN), f"{NEVER},ok") == 200
        assert cut_then(drill.played()[2:], "ok")

    def test_a_compressed_error_is_read(self) -> None:
        import gzip

        body = gzip.compress(json.dumps({"error": {"code": "insufficient_quota"}}).encode())
        headers = {"content-encoding": "gzip", "content-type": "application/json"}
        transport = httpx.MockTransport(lambda _: httpx.Response(429, headers=headers, stream=_Raw(body)))
        with httpx.Client(transport=RetryTransport(at_once(), transport)) as client:
            response = client.get("http://x/")
        trace = trace_of(response)
        assert trace is not None
        assert [receipt["kind"] for receipt in trace.receipts] == ["billing"]
        assert response.json() == {"error": {"code": "insufficient_quota"}}

    def test_an_error_without_end_is_read_in_part_and_passed_on(self) -> None:
        closed: list[bool] = []

        class Endless(httpx.SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                while True:
                    yield b"x" * 65536

            def close(self) -> None:
                closed.append(True)

        transport = httpx.MockTransport(lambda _: httpx.Response(503, stream=Endless()))
        client = httpx.Client(transport=RetryTransport(at_once(), transport))
        with client, client.stream("GET", "http://x/") as response:
            assert response.status_code == 503
            assert closed == [True, True]
            read = 0
            for chunk in response.iter_raw():
                read += len(chunk)
                if read > 3_000_000:
                    break
        assert closed == [True, True, True]

    @pytest.mark.parametrize("marker", ["503,ok", "404"])
    @pytest.mark.parametrize("mode", ["before_first_item", "buffered"])
    @pytest.mark.parametrize("stream", [True, False])
    def test_who_reads_from_raw_reads_it_all(self, drill: Drill, marker: str, mode: Any, stream: bool) -> None:
        session = requests.Session()
        session.mount("http://", RetryAdapter(at_once(stream={"mode": mode})))
        response = session.get(drill.address(marker), headers=drill.headers, stream=stream)
        body = response.raw.read() or response.content
        assert json.loads(body)
        assert len(body) == int(response.headers["content-length"])

    @pytest.mark.parametrize("stream", [True, False])
    def test_an_adapter_that_is_no_http(self, stream: bool) -> None:
        class Memory(requests.adapters.BaseAdapter):
            def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
                response = requests.Response()
                statuses.append(503 if not statuses else 200)
                response.status_code, response.raw, response.request = statuses[-1], io.BytesIO(b"kept"), request
                return response

            def close(self) -> None: ...

        statuses: list[int] = []
        session = requests.Session()
        session.mount("memory://", RetryAdapter(at_once(), Memory()))
        assert session.get("memory://x", stream=stream).content == b"kept"
        assert statuses == [503, 200]

    def test_cookies_are_kept(self, drill: Drill) -> None:
        from http.cookies import SimpleCookie
        from http.server import BaseHTTPRequestHandler, HTTPServer

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                cookie = SimpleCookie({"seen": "yes"})
                self.send_header("Set-Cookie", cookie["seen"].OutputString())
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_: Any) -> None: ...

        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.handle_request)
            thread.start()
            session = requests.Session()
            session.mount("http://", RetryAdapter(at_once()))
            assert session.get(f"http://127.0.0.1:{server.server_port}/").text == "ok"
            thread.join()
        assert session.cookies.get("seen") == "yes"

    def test_a_session_of_requests_can_be_pickled(self, drill: Drill) -> None:
        session = requests.Session()
        session.mount("http://", RetryAdapter(at_once()))
        copy = pickle.loads(pickle.dumps(session))
        assert copy.get(drill.address("503,ok"), headers=drill.headers).status_code == 200


class _Raw(httpx.SyncByteStream):
    def __init__(self, body: bytes) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body


def _get_httpx(policy: Any, url: str, headers: dict[str, str]) -> Callable[[], Any]:
    def get() -> Any:
        with httpx.Client(transport=RetryTransport(policy)) as client:
            return client.get(url, headers=headers).raise_for_status()

    return get


def _get_requests(policy: Any, url: str, headers: dict[str, str]) -> Callable[[], Any]:
    def get() -> Any:
        session = requests.Session()
        session.mount("http://", RetryAdapter(policy))
        session.get(url, headers=headers).raise_for_status()

    return get


def _get_aiohttp(policy: Any, url: str, headers: dict[str, str]) -> Callable[[], Any]:
    async def main() -> None:
        async with (
            aiohttp.ClientSession(middlewares=(RetryMiddleware(policy),), raise_for_status=True) as session,
            session.get(url, headers=headers) as response,
        ):
            await response.read()

    return lambda: asyncio.run(main())


@pytest.mark.parametrize("client", [_get_httpx, _get_requests, _get_aiohttp])
def test_what_raise_for_status_raises_leads_to_the_call(client: Any, drill: Drill) -> None:
    result = at_once().execute(client(at_once(), drill.address("503"), drill.headers))
    assert (result.attempts, len(drill.visits())) == (1, 3)
    trace = trace_of(result.error)
    assert trace is not None


def test_a_connection_that_is_refused_after_a_body_that_broke_is_no_stream(drill: Drill) -> None:
    responses = [httpx.Response(200, headers={"content-length": "9"}, stream=_Breaks())]

    def handle(request: httpx.Request) -> httpx.Response:
        if responses:
            return responses.pop()
        raise httpx.ConnectError("refused", request=request)

    client = httpx.Client(transport=RetryTransport(at_once(), httpx.MockTransport(handle)))
    with client, pytest.raises(httpx.ConnectError) as raised:
        client.get("http://x/")
    trace = trace_of(raised.value)
    assert trace is not None
    assert [receipt["kind"] for receipt in trace.receipts] == ["stream_interrupted", "transport", "transport"]


def test_a_status_is_not_lost_to_a_body_that_breaks() -> None:
    headers = {"retry-after": "3", "content-length": "9"}
    transport = httpx.MockTransport(lambda _: httpx.Response(503, headers=headers, stream=_Breaks()))
    with testing.virtual() as clock, httpx.Client(transport=RetryTransport(still(), transport)) as client:
        with client.stream("GET", "http://x/") as response:
            assert response.status_code == 503
            with pytest.raises(httpx.ReadError, match="broken"):
                response.read()
        assert [round(wait) for wait in clock.sleeps] == [3, 3]

        async def main() -> int:
            transport = httpx.MockTransport(lambda _: httpx.Response(503, headers=headers, stream=_BreaksAsync()))
            async with (
                httpx.AsyncClient(transport=AsyncRetryTransport(still(), transport)) as client,
                client.stream("GET", "http://x/") as response,
            ):
                return response.status_code

        assert asyncio.run(main()) == 503


class _BreaksAsync(httpx.AsyncByteStream):
    async def __aiter__(self) -> Any:
        yield b"part"
        raise httpx.ReadError("broken")


class _Breaks(httpx.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        yield b"part"
        raise httpx.ReadError("broken")
