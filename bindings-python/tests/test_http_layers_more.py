"""The HTTP layers where their clients differ, and where users meet them: other transports, cancellation, records."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging
import pickle
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import aiohttp
import httpx
import pytest
import requests
import trio
from at_gateway import NEVER, OFTEN, Drill, cut_then
from failing import at_once, still

import reprieve
from reprieve import Policy, testing, trace_of
from reprieve.integrations.aiohttp import RetryMiddleware
from reprieve.integrations.httpx import AsyncRetryTransport, RetryTransport
from reprieve.integrations.requests import RetryAdapter


def address(drill: Drill, marker: str, *, sse: bool = False) -> str:
    return f"{drill.origin}/any?q={quote(f'#[{marker}]')}{'&stream=true' if sse else ''}"


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
                return (await client.get(address(drill, marker), headers=drill.headers)).status_code

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
        response = session.get(address(drill, marker), headers=drill.headers, stream=stream)
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
        assert copy.get(address(drill, "503,ok"), headers=drill.headers).status_code == 200


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
    result = at_once().execute(client(at_once(), address(drill, "503"), drill.headers))
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


class TestCancellation:
    def test_a_task_that_is_cancelled_leaves_nothing(self, drill: Drill) -> None:
        lines: list[str] = []

        async def main() -> int:
            limits = httpx.Limits(max_connections=1)
            transport = AsyncRetryTransport(Policy().bind(sink=lines.append), httpx.AsyncHTTPTransport(limits=limits))
            async with httpx.AsyncClient(transport=transport, headers=drill.headers) as client:
                for marker in (NEVER, "retry-after=30"):
                    with pytest.raises(asyncio.TimeoutError):
                        await asyncio.wait_for(client.get(address(drill, marker)), 0.3)
                return (await client.get(address(drill, "ok"))).status_code

        assert asyncio.run(main()) == 200
        ended = [json.loads(line) for line in lines if '"call_ended"' in line]
        assert [line["reason"] for line in ended] == ["cancelled", "cancelled", None]

    def test_the_time_of_aiohttp_bounds_all_attempts(self, drill: Drill) -> None:
        async def main() -> None:
            timeout = aiohttp.ClientTimeout(total=0.5)
            retrying = RetryMiddleware(at_once(max_attempts=9))
            async with aiohttp.ClientSession(middlewares=(retrying,), timeout=timeout) as session:
                await session.get(address(drill, "retry-ms=200,retry-ms=200,retry-ms=200,ok"), headers=drill.headers)

        with pytest.raises(asyncio.TimeoutError):
            asyncio.run(main())
        assert len(drill.visits()) < 4

    def test_a_websocket_goes_through(self) -> None:
        from aiohttp import web

        async def echo(request: web.Request) -> web.WebSocketResponse:
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            await socket.send_str(await socket.receive_str())
            return socket

        async def main() -> str:
            app = web.Application()
            app.router.add_get("/", echo)
            runner = web.AppRunner(app)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            port = runner.addresses[0][1]
            try:
                async with (
                    aiohttp.ClientSession(middlewares=(RetryMiddleware(at_once()),)) as session,
                    session.ws_connect(f"http://127.0.0.1:{port}/") as socket,
                ):
                    await socket.send_str("hello")
                    return await socket.receive_str()
            finally:
                await runner.cleanup()

        assert asyncio.run(main()) == "hello"


class TestRecords:
    def test_a_stream_ends_its_record_when_it_is_over(self, drill: Drill) -> None:
        lines: list[str] = []
        transport = RetryTransport(at_once().bind(sink=lines.append, scene="download"))
        with httpx.Client(transport=transport, headers=drill.headers) as client:
            with client.stream("GET", address(drill, "503,sse-slow=20", sse=True)) as response:
                first = trace_of(response)
                assert first is not None
                assert first.ended is None
                assert [json.loads(line)["kind"] for line in lines] == ["overloaded"]
                response.read()
            last = trace_of(response)
        assert last is not None
        assert last.ended is not None
        assert (last.ended["outcome"], last.ended["scene"], len(lines)) == ("success", "download", 3)

    def test_nothing_keeps_a_response(self, drill: Drill) -> None:
        with httpx.Client(transport=RetryTransport(at_once()), headers=drill.headers) as client:
            kept = [weakref.ref(client.get(address(drill, marker))) for marker in ("ok", "503,ok", "404")]
            gc.collect()  # a response of httpx is in a cycle of its own
            assert [ref() for ref in kept] == [None, None, None]

    def test_a_response_that_nobody_closes(self, drill: Drill, caplog: pytest.LogCaptureFixture) -> None:
        async def main() -> None:
            async with aiohttp.ClientSession(middlewares=(RetryMiddleware(at_once()),)) as session:
                await session.get(address(drill, "sse-slow=200", sse=True), headers=drill.headers)
                gc.collect()

        with caplog.at_level(logging.ERROR):
            asyncio.run(main())
        assert not caplog.records

    def test_time_is_not_lost_between_attempts(self, drill: Drill) -> None:
        with httpx.Client(transport=RetryTransport(at_once(max_attempts=5)), headers=drill.headers) as client:
            response = client.get(address(drill, "503,503,503,503,ok"))
        trace = trace_of(response)
        assert trace is not None
        assert [receipt["delay_ms"] for receipt in trace.receipts] == [0, 0, 0, 0, None]


class TestFunctionsOfTheCall:
    """`check`, `prepare` and `repair` are given the client's own request and response."""

    def test_repair_changes_the_request(self) -> None:
        sent: list[str] = []

        def handle(request: httpx.Request) -> httpx.Response:
            sent.append(request.headers["authorization"])
            return httpx.Response(200 if sent[-1] == "new" else 401)

        def renew(call: dict[str, Any], failure: Any) -> None:
            assert failure.error.response.status_code == 401
            call["request"].headers["authorization"] = "new"

        transport = RetryTransport(at_once().bind(repair={"auth_failed": renew}), httpx.MockTransport(handle))
        with httpx.Client(transport=transport, headers={"authorization": "old"}) as client:
            assert client.get("http://x/").status_code == 200
        assert sent == ["old", "new"]

    def test_prepare_sends_a_request_to_its_target(self, drill: Drill) -> None:
        def prepare(call: dict[str, Any], target: str) -> dict[str, Any] | None:
            if target == "primary":
                return None
            return {"request": httpx.Request("PUT", address(drill, "429,ok"), headers=drill.headers, content=_parts())}

        def _parts() -> Iterator[bytes]:
            yield b"parts"

        policy = at_once(max_attempts=2, targets=[{"id": "primary"}, {"id": "backup"}]).bind(prepare=prepare)
        with httpx.Client(transport=RetryTransport(policy)) as client:
            response = client.get(address(drill, "503"), headers=drill.headers)
        assert response.status_code == 200
        assert [(visit["method"], visit["played"]) for visit in drill.visits()] == [
            ("GET", "503"),
            ("GET", "503"),
            ("PUT", "429"),
            ("PUT", "ok"),
        ]

    def test_check_refuses_a_response(self, drill: Drill) -> None:
        seen: list[str] = []

        def check(response: httpx.Response) -> str | None:
            seen.append(json.loads(response.read())["object"])
            return "invalid_output" if len(seen) < 2 else None

        limits = httpx.Limits(max_connections=1)
        transport = RetryTransport(at_once().bind(check=check), httpx.HTTPTransport(limits=limits))
        with httpx.Client(transport=transport, headers=drill.headers) as client:
            assert client.get(address(drill, "ok")).json()["object"] == "chat.completion"
        assert len(drill.visits()) == 2

    def test_a_stream_that_check_refuses_is_closed(self, drill: Drill) -> None:
        async def main() -> None:
            limits = httpx.Limits(max_connections=1)
            refusing = at_once(max_attempts=2).bind(check=lambda response: False)
            transport = AsyncRetryTransport(refusing, httpx.AsyncHTTPTransport(limits=limits))
            timeout = httpx.Timeout(300, pool=30)
            async with httpx.AsyncClient(transport=transport, headers=drill.headers, timeout=timeout) as client:
                for _ in range(2):
                    with pytest.raises(reprieve.BadOutput):
                        await client.get(address(drill, "sse-slow=300", sse=True))

        asyncio.run(main())
        assert len(drill.visits()) == 4

    def test_requests_and_aiohttp_alike(self, drill: Drill) -> None:
        def renew(call: dict[str, Any], failure: Any) -> None:
            call["request"].headers["x-renewed"] = "yes"

        policy = at_once().bind(repair={"auth_failed": renew}, check=lambda response: response.status_code == 200)
        session = requests.Session()
        session.mount("http://", RetryAdapter(policy))
        assert session.get(address(drill, "401,ok"), headers=drill.headers).status_code == 200

        async def main() -> int:
            retrying = RetryMiddleware(at_once().bind(repair={"auth_failed": renew}, check=lambda r: r.status == 200))
            async with (
                aiohttp.ClientSession(middlewares=(retrying,)) as session,
                session.get(address(drill, "401,401,ok"), headers=drill.headers) as first,
            ):
                return first.status

        assert asyncio.run(main()) == 401  # repaired once, and no more
        assert drill.played() == ["401", "ok", "401", "401"]
