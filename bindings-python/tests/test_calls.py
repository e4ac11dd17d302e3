"""Calls of plain functions: what is called, with what, what is answered and how long is waited."""

from __future__ import annotations

import asyncio
import functools
import inspect
import operator
import pickle
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from failing import Script, Status, at_once, fails, still

import reprieve
from reprieve import Policy, current_attempt, testing

Clock = testing.VirtualClock


# --- what can be decorated ---


def test_a_function_keeps_its_signature_and_metadata() -> None:
    def ask(question: str, *, loud: bool = False) -> str:
        """Asks."""
        return question

    ask.tag = "kept"  # type: ignore[attr-defined]
    wrapped: Any = Policy()(ask)
    assert wrapped("hi") == "hi"
    assert wrapped.__wrapped__ is ask
    assert wrapped.tag == "kept"
    assert inspect.signature(wrapped) == inspect.signature(ask)
    for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__"):
        assert getattr(wrapped, name) == getattr(ask, name)


async def documented() -> None:
    """Async."""


def test_a_coroutine_function_stays_one() -> None:
    for policy in (Policy(), Policy().bind(idempotency_key="k"), Policy.preset("llm")):
        wrapped: Any = policy(documented)
        assert inspect.iscoroutinefunction(wrapped)
        assert (wrapped.__name__, wrapped.__doc__) == ("documented", "Async.")


class Shop:
    stock = 7

    @at_once()
    def method(self, n: int) -> tuple[Shop, int]:
        return self, n

    @at_once()
    @classmethod
    def of_class(cls, n: int) -> tuple[type, int]:
        return cls, n

    @classmethod
    @at_once()
    def of_class_outside(cls, n: int) -> tuple[type, int]:
        return cls, n

    @at_once()
    @staticmethod
    def static(n: int) -> int:
        return n

    @staticmethod
    @at_once()
    def static_outside(n: int) -> int:
        return n

    size = at_once()(len)
    add = at_once()(functools.partial(operator.add, 1))
    played = at_once()(Script("played"))  # type: ignore[arg-type]

    def __call__(self, n: int) -> int:
        return n + self.stock


@pytest.mark.filterwarnings("ignore:functools.partial will be:FutureWarning")
def test_methods_bind_as_the_function_itself_would() -> None:
    shop = Shop()
    assert shop.method(3) == (shop, 3)
    assert Shop.method(shop, 3) == (shop, 3)
    assert shop.of_class(3) == Shop.of_class(3) == (Shop, 3)
    assert shop.of_class_outside(3) == (Shop, 3)
    assert shop.static(3) == Shop.static(3) == 3
    assert shop.static_outside(3) == 3
    assert shop.size("four") == 4
    assert shop.add(2) == 3
    assert shop.played() == "played"
    assert list(inspect.signature(shop.method).parameters) == ["n"]
    assert list(inspect.signature(Shop.static).parameters) == ["n"]


def test_partials_objects_classes_and_builtins_are_called() -> None:
    policy = at_once()
    assert policy.call(functools.partial(divmod, 7), 2) == (3, 1)
    assert policy.call(Shop(), 3) == 10
    assert isinstance(policy.call(Shop), Shop)
    assert policy.call(len, "four") == 4
    assert policy.call("a b".split) == ["a", "b"]
    assert policy(functools.partial(divmod, 7))(2) == (3, 1)
    assert policy.call(Mock(return_value=5), 1) == 5


def test_a_class_with_an_async_call_is_a_class() -> None:
    class Client:
        async def __call__(self) -> None: ...

    assert isinstance(at_once().call(Client), Client)
    assert inspect.iscoroutinefunction(at_once()(Client()))


@pytest.mark.parametrize("options", [{}, {"idempotency_key": "k"}], ids=["happy path", "with options"])
def test_a_plain_function_that_answers_a_coroutine_is_awaited_under_the_policy(options: dict[str, Any]) -> None:
    """The methods of async clients are plain functions around one: what they answer is the attempt."""
    seen: list[int] = []

    async def ask() -> str:
        attempt = current_attempt()
        assert attempt is not None
        seen.append(attempt.number)
        if len(seen) < 3:
            raise TimeoutError
        return "answer"

    policy = at_once().bind(**options)
    assert asyncio.run(policy.call(lambda: ask())) == "answer"
    assert seen == [1, 2, 3]
    seen.clear()
    result = asyncio.run(policy.execute(lambda: ask()))
    assert (result.value, result.attempts, seen) == ("answer", 3, [1, 2, 3])


def test_a_started_thread_cannot_await(recwarn: pytest.WarningsRecorder) -> None:
    async def ask() -> int:
        return 1

    with pytest.raises(TypeError, match="answered a coroutine"):
        at_once().start(lambda: ask()).result()
    assert not recwarn.list


@Policy(max_attempts=1)
def at_module_level(n: int) -> int:
    return n + 1


def test_a_decorated_function_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(at_module_level)) is at_module_level
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(at_once()(lambda: 1))


def test_a_policy_over_a_policy_does_not_repeat_what_that_has_repeated() -> None:
    inner = at_once(max_attempts=2)(function := fails(5))
    with pytest.raises(TimeoutError):
        at_once(max_attempts=3).call(inner)
    assert function.count == 2


# --- values ---


@pytest.mark.parametrize("value", [None, 0, "", [], False, float("nan")])
def test_a_falsy_result_is_a_result(value: Any) -> None:
    function = Script(TimeoutError(), value)
    assert at_once().call(function) is value
    result = at_once().execute(Script(value))
    assert result.ok
    assert result.value is value
    assert result.value_or("default") is value


def test_a_falsy_response_in_an_error_is_still_a_response() -> None:
    class Answer:
        status_code = 429
        headers = {"retry-after": "7"}  # noqa: RUF012

        def __bool__(self) -> bool:
            return False

    class Failed(Exception):
        response = Answer()

    assert reprieve.classify(Failed()).kind == "rate_limit"
    assert reprieve.classify(Failed()).retry_after == 7.0


def test_a_returned_exception_is_a_value() -> None:
    error = TimeoutError()
    assert at_once().call(lambda: error) is error


# --- execute ---


def test_execute_answers_every_field(clock: Clock) -> None:
    def ask() -> dict[str, Any]:
        clock.advance(0.25)
        return {"usage": {"prompt_tokens": 11, "completion_tokens": 3}}

    result = still().execute(ask)
    assert (result.ok, result.error, result.failure, result.stop_reason, result.resume_in) == (
        True,
        None,
        None,
        None,
        None,
    )
    assert (result.attempts, result.latency, result.usage, result.cost) == (
        1,
        0.25,
        {"input_tokens": 11, "output_tokens": 3},
        None,
    )
    assert result.trace.receipts[0]["input_tokens"] == 11


def test_execute_of_a_failure(clock: Clock) -> None:
    error = Status(429, retry_after="90")
    result = still().execute(Script(error))
    assert not result.ok
    assert result.error is error
    assert result.failure is not None
    assert (result.failure.kind, result.failure.retry_after) == ("rate_limit", 90.0)
    assert (result.stop_reason, result.resume_in, result.attempts) == ("retry_after_too_long", 90.0, 1)
    assert result.value_or("default") == "default"
    assert result.disposition == "failed"


def test_execute_after_a_retry_has_no_failure(clock: Clock) -> None:
    result = still().execute(fails(1))
    assert (result.ok, result.value, result.failure, result.attempts) == (True, "ok", None, 2)
    assert result.latency == 0.5
    assert result.trace.receipts[0]["kind"] == "timeout"


def test_execute_raises_what_is_no_exception() -> None:
    with pytest.raises(KeyboardInterrupt):
        at_once().execute(Script(KeyboardInterrupt()))


def test_execute_needs_a_person_where_the_policy_says_so(clock: Clock) -> None:
    result = still(requires_human_fallback=True, max_attempts=1).execute(fails(9))
    assert result.disposition == "human"
    assert "needs a person" in result.error.__notes__[0]


def test_an_unknown_error_says_how_to_retry_it() -> None:
    with pytest.raises(ArithmeticError) as caught:
        at_once().call(Script(ArithmeticError("odd")))
    assert 'add "unknown" to retry_on' in caught.value.__notes__[0]


# --- waits ---


def test_the_waits_of_a_seed_are_the_same_each_time(clock: Clock) -> None:
    for _ in range(2):
        at_once().execute(fails(0))
        Policy(max_attempts=5).bind(seed=7).execute(fails(9))
    assert clock.sleeps[:4] == clock.sleeps[4:]
    assert len(set(clock.sleeps)) == 4


def test_retry_after_is_waited_out(clock: Clock) -> None:
    policy = still(retry_after={"max": 60, "spread": 0})
    assert policy.call(Script(Status(429, retry_after="20"), "ok")) == "ok"
    assert clock.sleeps == [20.0]


def test_a_zero_wait_does_not_sleep(clock: Clock) -> None:
    at_once().call(fails(2))
    assert clock.sleeps == []


def test_time_in_the_function_counts(clock: Clock) -> None:
    def slow() -> None:
        clock.advance(9)
        raise TimeoutError

    given: list[float] = []

    def watched() -> None:
        attempt = current_attempt()
        assert attempt is not None
        given.append(attempt.timeout)
        slow()

    result = at_once(max_attempts=5, total_timeout=25, attempt_timeout=10).execute(watched)
    assert given == [10.0, 10.0, 7.0]
    assert result.stop_reason == "deadline_exceeded"


def test_a_late_success_is_a_success(clock: Clock) -> None:
    assert still(attempt_timeout=1, total_timeout=2).call(lambda: clock.advance(50) or "late") == "late"


def test_real_waits_are_slept(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    began = time.monotonic()
    still(backoff={"base": 0.02, "max": 0.02}).call(fails(2))
    assert time.monotonic() - began >= 0.04


def test_backoff_takes_timedelta_seconds_or_text(clock: Clock) -> None:
    for wait in (timedelta(seconds=3), 3, 3.0, "3s"):
        still().bind(backoff=lambda failure, n, wait=wait: wait).call(fails(1))
    assert clock.sleeps == [3.0] * 4
