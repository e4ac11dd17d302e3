"""A request under an HTTP layer is a call: it is cancelled like one, has records, and asks `check`, `prepare` and
`repair`."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import weakref
from collections.abc import Iterator
from typing import Any

import aiohttp
import httpx
import pytest
import requests
from at_gateway import NEVER, Drill
from failing import at_once

import reprieve
from reprieve import Policy, trace_of
from reprieve.integrations.aiohttp import RetryMiddleware
from reprieve.integrations.httpx import AsyncRetryTransport, RetryTransport
from reprieve.integrations.requests import RetryAdapter


class TestCancellation:
    def test_a_task_that_is_cancelled_leaves_nothing(self, drill: Drill) -> None:
        lines: list[str] = []

        async def main() -> int:
            limits = httpx.Limits(max_connections=1)
            transport = AsyncRetryTransport(Policy().bind(sink=lines.append), httpx.AsyncHTTPTransport(limits=limits))
            async with httpx.AsyncClient(transport=transport, headers=drill.headers) as client:
                for marker in (NEVER, "retry-after=30"):
                    with pytest.raises(asyncio.TimeoutError):
                        await asyncio.wait_for(client.get(drill.address(marker)), 0.3)
                return (await client.get(drill.address("ok"))).status_code

        assert asyncio.run(main()) == 200
        ended = [json.loads(line) for line in lines if '"call_ended"' in line]
        assert [line["reason"] for line in ended] == ["cancelled", "cancelled", None]

    def test_the_time_of_aiohttp_bounds_all_attempts(self, drill: Drill) -> None:
        async def main() -> None:
            timeout = aiohttp.ClientTimeout(total=0.5)
            retrying = RetryMiddleware(at_once(max_attempts=9))
            async with aiohttp.ClientSession(middlewares=(retrying,), timeout=timeout) as session:
                await session.get(drill.address("retry-ms=200,retry-ms=200,retry-ms=200,ok"), headers=drill.headers)

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
            with client.stream("GET", drill.address("503,sse-slow=20", sse=True)) as response:
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
            kept = [weakref.ref(client.get(drill.address(marker))) for marker in ("ok", "503,ok", "404")]
            gc.collect()  # a response of httpx is in a cycle of its own
            assert [ref() for ref in kept] == [None, None, None]

    def test_a_response_that_nobody_closes(self, drill: Drill, caplog: pytest.LogCaptureFixture) -> None:
        async def main() -> None:
            async with aiohttp.ClientSession(middlewares=(RetryMiddleware(at_once()),)) as session:
                await session.get(drill.address("sse-slow=200", sse=True), headers=drill.headers)
                gc.collect()

        with caplog.at_level(logging.ERROR):
            asyncio.run(main())
        assert not caplog.records

    def test_time_is_not_lost_between_attempts(self, drill: Drill) -> None:
        with httpx.Client(transport=RetryTransport(at_once(max_attempts=5)), headers=drill.headers) as client:
            response = client.get(drill.address("503,503,503,503,ok"))
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
            return {"request": httpx.Request("PUT", drill.address("429,ok"), headers=drill.headers, content=_parts())}

        def _parts() -> Iterator[bytes]:
            yield b"parts"

        policy = at_once(max_attempts=2, targets=[{"id": "primary"}, {"id": "backup"}]).bind(prepare=prepare)
        with httpx.Client(transport=RetryTransport(policy)) as client:
            response = client.get(drill.address("503"), headers=drill.headers)
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
            assert client.get(drill.address("ok")).json()["object"] == "chat.completion"
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
                        await client.get(drill.address("sse-slow=300", sse=True))

        asyncio.run(main())
        assert len(drill.visits()) == 4

    def test_requests_and_aiohttp_alike(self, drill: Drill) -> None:
        def renew(call: dict[str, Any], failure: Any) -> None:
            call["request"].headers["x-renewed"] = "yes"

        policy = at_once().bind(repair={"auth_failed": renew}, check=lambda response: response.status_code == 200)
        session = requests.Session()
        session.mount("http://", RetryAdapter(policy))
        assert session.get(drill.address("401,ok"), headers=drill.headers).status_code == 200

        async def main() -> int:
            retrying = RetryMiddleware(at_once().bind(repair={"auth_failed": renew}, check=lambda r: r.status == 200))
            async with (
                aiohttp.ClientSession(middlewares=(retrying,)) as session,
                session.get(drill.address("401,401,ok"), headers=drill.headers) as first,
            ):
                return first.status

        assert asyncio.run(main()) == 401  # repaired once, and no more
        assert drill.played() == ["401", "ok", "401", "401"]
