"""Celery run for real, with calls that fail at the gateway."""

from __future__ import annotations

import time
import uuid
from typing import Any

import celery
import pytest
from at_gateway import Drill, asker
from celery.contrib.testing.worker import start_worker
from celery.exceptions import Ignore
from failing import Script, Status, at_once

from reprieve import current_attempt
from reprieve.integrations.celery import RetryTask


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

    def again(self, app: celery.Celery, body: Any, **options: Any) -> list[int]:
        """The numbers of a task's executions, of which the first one ends with this."""
        seen: list[int] = []

        @app.task(name=unique(), base=RetryTask, bind=True, **options)
        def task(self: Any) -> int:
            seen.append(self.request.retries)
            return 42 if self.request.retries else body(self)

        @app.task(name=unique())
        def last() -> None:
            """Comes when whatever the other one has put back has come."""

        with start_worker(app, perform_ping_check=False, pool="solo", shutdown_timeout=120):
            assert task.delay().get(timeout=120) == 42
            last.apply_async(countdown=0.5).get(timeout=120)
        return seen

    @staticmethod
    def stops(*_: Any) -> Any:
        return at_once(retry_after={"max": 0}).call(Script(Status(429, retry_after_ms="50")))

    def test_what_the_task_puts_back_itself_is_put_back_once(self, app: celery.Celery) -> None:
        def own(task: Any) -> None:
            try:
                self.stops()
            except Status as error:
                raise task.retry(exc=error, countdown=0) from error

        assert self.again(app, own) == [0, 1]

    @pytest.mark.parametrize("its_own_delay", [0, 3600])
    def test_beside_autoretry_for_the_stop_says_when(self, app: celery.Celery, its_own_delay: int) -> None:
        assert self.again(app, self.stops, autoretry_for=(Exception,), default_retry_delay=its_own_delay) == [0, 1]

    def test_autoretry_for_has_the_errors_that_do_not_say_when(self, app: celery.Celery) -> None:
        def fails(_: Any) -> None:
            at_once().call(Script(Status(500)))

        assert self.again(app, fails, autoretry_for=(Status,), default_retry_delay=0) == [0, 1]

    def test_a_task_that_is_to_be_ignored_is(self, app: celery.Celery) -> None:
        seen: list[int] = []

        @app.task(name=unique(), base=RetryTask, bind=True)
        def answer(self: Any) -> None:
            seen.append(self.request.retries)
            try:
                TestCelery.stops()
            except Status as error:
                self.update_state(state="SUCCESS", meta="skipped")
                raise Ignore from error

        @app.task(name=unique())
        def last() -> None:
            """Comes when whatever the other one has put back has come."""

        with start_worker(app, perform_ping_check=False, pool="solo", shutdown_timeout=120):
            assert answer.delay().get(timeout=120) == "skipped"
            last.apply_async(countdown=0.5).get(timeout=120)
        assert seen == [0]

    @pytest.mark.parametrize("base", [celery.Task, RetryTask])
    def test_a_task_is_made_of_a_decorated_function(self, app: celery.Celery, drill: Drill, base: Any) -> None:
        ask = asker(drill)

        @app.task(name=unique(), base=base)
        @at_once()
        def answer(marker: str) -> str | None:
            """A task."""
            return ask(marker)

        @app.task(name=unique(), base=base, bind=True)
        @at_once()
        def retries(self: Any) -> int:
            return self.request.retries

        assert run(answer, "500,ok").startswith("The gateway answers")
        assert run(retries) == 0
        assert (answer.__name__, answer.__doc__, answer("ok")) == ("answer", "A task.", run(answer, "ok"))
        with pytest.raises(TypeError, match="marker"):
            answer.delay()

    def test_a_task_of_a_class(self, app: celery.Celery) -> None:
        class Answer(RetryTask):
            name = unique()

            def __init__(self) -> None:
                self.seen: list[int] = []

            def run(self, number: int) -> int:
                self.seen.append(self.request.retries)
                return number if self.request.retries else TestCelery.stops()

        answer: Any = app.register_task(Answer())
        assert run(answer, 7) == 7
        assert answer.seen == [0, 1]

    def test_eager_tasks_are_run_again_at_once(self, app: celery.Celery) -> None:
        app.conf.task_always_eager = True
        seen: list[Any] = []

        @app.task(name=unique(), base=RetryTask, bind=True)
        def answer(self: Any) -> int:
            seen.append((self.request.id, self.request.retries))
            return 42 if self.request.retries else TestCelery.stops()

        assert answer.delay().get() == 42
        [(first, _), (second, retries)] = seen
        assert (first == second, retries) == (True, 1)

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
