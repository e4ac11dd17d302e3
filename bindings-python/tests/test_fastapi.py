"""FastAPI run for real, with calls that fail at the gateway."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import fastapi
import httpx
import openai
import pytest
import uvicorn
from at_gateway import ANSWER, Drill, asker
from failing import Script, Status, at_once
from starlette.responses import StreamingResponse

import reprieve
from reprieve import ConfigError, Policy, Run
from reprieve.integrations import fastapi as for_fastapi


class TestFastAPI:
    @pytest.fixture
    def app(self) -> fastapi.FastAPI:
        app = fastapi.FastAPI()
        for_fastapi.install(app)
        return app

    def get(self, app: Any, path: str = "/") -> httpx.Response:
        async def main() -> httpx.Response:
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as client:
                return await client.get(path)

        return asyncio.run(main())

    def answer_of(self, app: fastapi.FastAPI, policy: Any, *steps: Any) -> httpx.Response:
        @app.get("/")
        def endpoint() -> Any:
            return policy.call(Script(*steps))

        return self.get(app)

    def test_a_real_server(self, app: fastapi.FastAPI, drill: Drill) -> None:
        ask = asker(drill)

        @app.get("/ask")
        def endpoint(marker: str) -> str | None:
            return at_once(retry_after={"max": 1}).call(ask, marker)

        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            url = f"http://127.0.0.1:{port}/ask"
            fine = httpx.get(url, params={"marker": "503,ok"}, timeout=60)
            stopped = httpx.get(url, params={"marker": "retry-after=7"}, timeout=60)
        finally:
            server.should_exit = True
            thread.join()
        assert fine.json().startswith("The gateway answers")
        assert (stopped.status_code, stopped.headers["retry-after"]) == (503, "7")
        assert stopped.json()["reason"] == "retry_after_too_long"
        assert len(stopped.json()["trace_id"]) == 32

    def test_seconds_are_rounded_up(self, app: fastapi.FastAPI) -> None:
        answer = self.answer_of(app, at_once(retry_after={"max": 0}), Status(429, retry_after_ms="1200"))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")

    def test_without_a_known_time_there_is_no_header(self, app: fastapi.FastAPI) -> None:
        answer = self.answer_of(app, at_once(), Status(500))
        assert (answer.status_code, answer.headers.get("retry-after")) == (503, None)
        assert answer.json()["detail"] == "all attempts failed"

    def test_a_deadline_is_a_504(self, app: fastapi.FastAPI) -> None:
        answer = self.answer_of(app, Policy(total_timeout=0.1), TimeoutError())
        assert (answer.status_code, answer.json()["reason"]) == (504, "deadline_exceeded")

    def test_what_must_not_be_repeated_is_a_502(self, app: fastapi.FastAPI) -> None:
        answer = self.answer_of(app, at_once(side_effects="unsafe"), TimeoutError())
        assert (answer.status_code, answer.json()["reason"]) == (502, "unsafe_to_repeat")

    def test_a_stop_before_an_attempt(self, app: fastapi.FastAPI) -> None:
        run = Run(attempts=1)
        run.cancel("over")
        answer = self.answer_of(app, at_once().bind(run=run), "never")
        assert (answer.status_code, answer.json()["reason"]) == (503, "cancelled")

    def test_an_open_breaker_says_when(self, app: fastapi.FastAPI) -> None:
        policy = at_once(breaker={"consecutive_failures": 1, "open_for": 300}, max_attempts=1)
        assert self.answer_of(app, policy, Status(500)).json()["reason"] == "attempts_exhausted"
        refused = self.get(app)
        assert refused.json()["reason"] == "circuit_open"
        assert 200 < int(refused.headers["retry-after"]) <= 300

    def test_what_is_not_retryable_stays_as_it_is(self, app: fastapi.FastAPI) -> None:
        with pytest.raises(Status):
            self.answer_of(app, at_once(), Status(400))

    def test_unless_it_may_work_later(self, app: fastapi.FastAPI) -> None:
        answer = self.answer_of(app, at_once(), Status(429, retry_after="7200"))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "7200")

    def test_a_handler_of_the_application_comes_first(self, app: fastapi.FastAPI) -> None:
        @app.exception_handler(Status)
        def handler(request: object, error: Status) -> fastapi.Response:
            assert for_fastapi.response_to(error) is not None
            return fastapi.Response(status_code=418)

        assert self.answer_of(app, at_once(), Status(500)).status_code == 418

    def test_other_errors_and_answers_are_left_alone(self, app: fastapi.FastAPI) -> None:
        @app.get("/gone")
        def gone() -> None:
            raise fastapi.HTTPException(410)

        @app.get("/bug")
        def bug() -> None:
            raise KeyError("a bug")

        assert self.get(app, "/gone").status_code == 410
        with pytest.raises(KeyError):
            self.get(app, "/bug")

    def test_what_has_begun_goes_on(self, app: fastapi.FastAPI) -> None:
        @app.get("/")
        def endpoint() -> StreamingResponse:
            def parts() -> Iterator[str]:
                yield "a"
                yield at_once().call(Script(Status(500)))

            return StreamingResponse(parts())

        with pytest.raises(Status):
            self.get(app)

    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_a_stream_that_stops_before_its_first_bytes_is_answered(
        self, app: fastapi.FastAPI, drill: Drill, asynchronous: bool
    ) -> None:
        options: dict[str, Any] = {"api_key": "k", "base_url": drill.url, "default_headers": drill.headers}

        def request(marker: str) -> dict[str, Any]:
            return {"model": "m", "messages": [{"role": "user", "content": f"#[{marker}]"}], "stream": True}

        def parts(marker: str) -> Iterator[str]:
            client = reprieve.wrap(openai.OpenAI(**options), at_once(retry_after={"max": 1}))
            yield ""  # nothing yet
            for chunk in client.chat.completions.create(**request(marker)):
                yield chunk.choices[0].delta.content or ""

        async def aparts(marker: str) -> AsyncIterator[str]:
            client = reprieve.wrap(openai.AsyncOpenAI(**options), at_once(retry_after={"max": 1}))
            async for chunk in await client.chat.completions.create(**request(marker)):
                yield chunk.choices[0].delta.content or ""

        @app.get("/{marker}")
        def endpoint(marker: str) -> StreamingResponse:
            return StreamingResponse(aparts(marker) if asynchronous else parts(marker), media_type="text/plain")

        fine, stopped = self.get(app, "/503,ok"), self.get(app, "/retry-after=7")
        assert (fine.status_code, fine.text) == (200, ANSWER)
        assert (stopped.status_code, stopped.headers["retry-after"]) == (503, "7")
        assert stopped.json()["reason"] == "retry_after_too_long"
        assert drill.played() == ["503", "ok", "retry-after=7"]

    def test_a_response_begins_with_its_first_bytes_and_not_with_its_last(self, app: fastapi.FastAPI) -> None:
        sent: list[str] = []

        async def body() -> AsyncIterator[bytes]:
            yield b""
            sent.append("nothing yet")
            yield b"a"
            sent.append("a is out")
            yield b"b"

        @app.get("/")
        def endpoint() -> StreamingResponse:
            return StreamingResponse(body())

        async def send(message: Any) -> None:
            sent.append(message["type"].removeprefix("http.response."))

        async def receive() -> Any:
            await asyncio.sleep(600)

        scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
        asyncio.run(app(scope, receive, send))
        assert sent == ["nothing yet", "start", "body", "a is out", "body", "body"]

    def test_an_answer_without_a_body_is_sent(self, app: fastapi.FastAPI) -> None:
        @app.get("/", status_code=204)
        def endpoint() -> None: ...

        assert self.get(app).status_code == 204

    def test_statuses_of_ones_own(self) -> None:
        app = fastapi.FastAPI()
        for_fastapi.install(app, {"attempts_exhausted": 429, "not_retryable": 502})
        assert self.answer_of(app, at_once(), Status(500)).status_code == 429

    @pytest.mark.parametrize("statuses", [{"exhausted": 503}, {"shed": 200}])
    def test_statuses_that_are_none(self, statuses: Any) -> None:
        with pytest.raises(ConfigError, match="statuses"):
            for_fastapi.RetryMiddleware(fastapi.FastAPI(), statuses)

    def test_it_is_logged(self, app: fastapi.FastAPI, caplog: pytest.LogCaptureFixture) -> None:
        @app.get("/{word}")
        def endpoint(word: str) -> Any:
            return at_once().call(Script(Status(500)))

        with caplog.at_level(logging.WARNING, "reprieve"):
            self.answer_of(app, at_once(), Status(500))
            self.get(app, "/a%0Ab")
        assert "GET / answered 503: Status('status 500')" in caplog.text
        assert "GET /a%0Ab answered 503" in caplog.text
