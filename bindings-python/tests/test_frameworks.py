"""Celery, FastAPI and LangGraph, each run for real, with calls that fail at the gateway."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any, TypedDict

import celery
import fastapi
import httpx
import openai
import pytest
import uvicorn
from at_gateway import Drill
from celery.contrib.testing.worker import start_worker
from failing import Script, Status, at_once
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt
from starlette.responses import StreamingResponse

from reprieve import ConfigError, Policy, Run, current_attempt, testing
from reprieve.integrations import fastapi as for_fastapi
from reprieve.integrations.celery import RetryTask
from reprieve.integrations.langgraph import retry_policy


def asker(drill: Drill) -> Any:
    client = openai.OpenAI(api_key="k", base_url=drill.url, max_retries=0, default_headers=drill.headers)

    def ask(marker: str) -> str | None:
        messages: Any = [{"role": "user", "content": f"#[{marker}]"}]
        return client.chat.completions.create(model="m", messages=messages).choices[0].message.content

    return ask


def unique() -> str:
    """A name for a task: Celery keeps them for the whole process."""
    return uuid.uuid4().hex


def run(task: Any, *args: Any) -> Any:
    """What a task comes to on a worker, which has to know it when it starts."""
    with start_worker(task.app, perform_ping_check=False, pool="solo", shutdown_timeout=120):
        return task.delay(*args).get(timeout=120)


class TestCelery:
    """A worker on a thread, a broker in memory."""

    @pytest.fixture
    def app(self) -> celery.Celery:
        app = celery.Celery("tests", broker="memory://", backend="cache+memory://", set_as_current=False)
        app.conf.update(worker_hijack_root_logger=False, task_default_queue=uuid.uuid4().hex)
        app.conf.broker_transport_options = {"polling_interval": 0.01}
        return app

    def test_a_stop_that_may_work_later_runs_the_task_again(self, app: celery.Celery, drill: Drill) -> None:
        ask, seen = asker(drill), []
        policy = at_once(retry_after={"max": "10ms"})  # what asks for more is not waited for

        @app.task(name=unique(), base=RetryTask, bind=True)
        def answer(self: Any, marker: str) -> str | None:
            seen.append((self.request.retries, time.monotonic()))
            return policy.call(ask, marker)

        assert run(answer, "retry-after=0.5").startswith("The gateway answers")
        assert [retries for retries, _ in seen] == [0, 1]
        assert seen[1][1] - seen[0][1] >= 0.5
        assert drill.played() == ["retry-after=0.5", "ok"]

    def test_any_other_error_is_the_tasks_own(self, app: celery.Celery, drill: Drill) -> None:
        ask = asker(drill)

        @app.task(name=unique(), base=RetryTask)
        def answer(marker: str) -> str | None:
            return at_once().call(ask, marker)

        with pytest.raises(Exception, match=r"401|invalid"):
            run(answer, "401")
        assert len(drill.visits()) == 1

    def test_so_is_the_last_one(self, app: celery.Celery, drill: Drill) -> None:
        ask = asker(drill)

        @app.task(name=unique(), base=RetryTask, max_retries=1)
        def answer(marker: str) -> str | None:
            return at_once(retry_after={"max": 0}).call(ask, marker)

        with pytest.raises(Exception, match=r"429|limit"):
            run(answer, "retry-after=0.01,retry-after=0.02,ok")
        assert len(drill.visits()) == 2

    def test_what_no_call_has_raised_is_left_alone(self, app: celery.Celery) -> None:
        @app.task(name=unique(), base=RetryTask)
        def answer() -> None:
            raise KeyError("of the task")

        with pytest.raises(KeyError):
            run(answer)

    def test_called_as_a_function_it_raises(self, app: celery.Celery) -> None:
        @app.task(name=unique(), base=RetryTask)
        def answer() -> None:
            at_once(retry_after={"max": 0}).call(Script(Status(429, retry_after="5")))

        with pytest.raises(Status):
            answer()

    def test_all_tasks_of_an_app(self) -> None:
        base = "reprieve.integrations.celery:RetryTask"
        app = celery.Celery("all", broker="memory://", task_cls=base, set_as_current=False)

        @app.task(name=unique())
        def answer() -> int:
            return 42

        assert isinstance(app.tasks[answer.name], RetryTask)

    def test_a_task_that_asks_to_be_run_again_within_a_call_is(self, app: celery.Celery) -> None:
        tries = []

        @app.task(name=unique(), base=RetryTask, bind=True)
        def answer(self: Any) -> int:
            def body() -> int:
                tries.append(current_attempt().number)  # type: ignore[union-attr]
                if len(tries) == 1:
                    raise self.retry(countdown=0)
                return len(tries)

            return at_once(retry_on=["unknown", "timeout"]).call(body)

        assert run(answer) == 2
        assert tries == [1, 1]


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

    def test_statuses_of_ones_own(self) -> None:
        app = fastapi.FastAPI()
        for_fastapi.install(app, {"attempts_exhausted": 429, "not_retryable": 502})
        assert self.answer_of(app, at_once(), Status(500)).status_code == 429

    @pytest.mark.parametrize("statuses", [{"exhausted": 503}, {"shed": 200}])
    def test_statuses_that_are_none(self, statuses: Any) -> None:
        with pytest.raises(ConfigError, match="statuses"):
            for_fastapi.RetryMiddleware(fastapi.FastAPI(), statuses)

    def test_it_is_logged(self, app: fastapi.FastAPI, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, "reprieve"):
            self.answer_of(app, at_once(), Status(500))
        assert "GET / answered 503: Status('status 500')" in caplog.text


class State(TypedDict):
    marker: str
    answer: str | None


class TestLangGraph:
    def graph(self, node: Any, **options: Any) -> Any:
        graph: Any = StateGraph(State)
        graph.add_node("ask", node, **options)
        graph.add_edge(START, "ask")
        graph.add_edge("ask", END)
        return graph.compile()

    def node(self, drill: Drill) -> Any:
        ask = asker(drill)

        def node(state: State) -> dict[str, Any]:
            return {"answer": ask(state["marker"])}

        return node

    def test_a_node_under_a_policy(self, drill: Drill) -> None:
        app = self.graph(at_once()(self.node(drill)))
        assert app.invoke({"marker": "503,retry-ms=5"})["answer"].startswith("The gateway answers")
        assert drill.played() == ["503", "retry-ms=5", "ok"]

    def test_its_retry_policy_asks_ours(self, drill: Drill) -> None:
        retrying = RetryPolicy(retry_on=at_once().is_retriable, initial_interval=0.01, jitter=False)
        app = self.graph(self.node(drill), retry_policy=retrying)
        assert app.invoke({"marker": "429,ok"})["answer"].startswith("The gateway answers")
        with pytest.raises(openai.BadRequestError):
            app.invoke({"marker": "400"})
        assert drill.played() == ["429", "ok", "400"]

    def test_layers_add(self, drill: Drill) -> None:
        policy = at_once()
        app = self.graph(policy(self.node(drill)), retry_policy=retry_policy(policy))
        with pytest.raises(openai.InternalServerError):
            app.invoke({"marker": "500"})
        assert len(drill.visits()) == 3

    def test_a_retry_policy_of_ours(self, drill: Drill) -> None:
        made = retry_policy(Policy(max_attempts=4, backoff={"base": 0.01, "factor": 3, "max": 0.05}))
        assert (made.initial_interval, made.backoff_factor, made.max_interval, made.max_attempts) == (0.01, 3, 0.05, 4)
        app = self.graph(self.node(drill), retry_policy=made)
        with pytest.raises(openai.InternalServerError):
            app.invoke({"marker": "500"})
        assert len(drill.visits()) == 4

    @pytest.mark.parametrize(
        ("backoff", "waits"),
        [
            ({"kind": "constant", "base": 2, "max": 2}, (2.0, 1.0, 2.0)),
            ({"kind": "linear", "base": 1, "max": 9}, (1.0, 2.0, 9.0)),
            ({"kind": "schedule", "delays": [1, 5, 3]}, (1.0, 2.0, 5.0)),
            ({"kind": "decorrelated", "base": 1, "max": 7}, (1.0, 2.0, 7.0)),
        ],
    )
    def test_its_waits(self, backoff: Any, waits: tuple[float, float, float]) -> None:
        made = retry_policy(Policy(backoff=backoff))
        assert (made.initial_interval, made.backoff_factor, made.max_interval) == waits

    def test_an_interrupt_goes_through(self) -> None:
        from langgraph.checkpoint.memory import InMemorySaver

        calls = []

        def node(state: State) -> dict[str, Any]:
            calls.append(state["marker"])
            return {"answer": interrupt("may I?")}

        graph: Any = StateGraph(State)
        graph.add_node("ask", at_once(retry_on=["unknown", "timeout"])(node))
        graph.add_edge(START, "ask")
        app = graph.compile(checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "1"}}
        with testing.virtual():
            asked = app.invoke({"marker": "x"}, config)
            assert asked["__interrupt__"][0].value == "may I?"
            assert app.invoke(Command(resume="yes"), config)["answer"] == "yes"
        assert calls == ["x", "x"]
