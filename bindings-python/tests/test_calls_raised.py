"""What calls of plain functions raise: the very exception, with its trace; and exceptions of every kind."""

from __future__ import annotations

import asyncio
import pickle
import traceback
from typing import Any
from unittest.mock import Mock

import pytest
from failing import Script, at_once, fails, still

import reprieve
from reprieve import AttemptTimeout, DeadlineExceeded, RetryError, RetryExhausted, testing, trace_of

Clock = testing.VirtualClock


# --- what is raised ---


def test_giving_up_raises_the_very_exception_with_trace_and_note(clock: Clock) -> None:
    errors = [TimeoutError(n) for n in range(3)]
    with pytest.raises(TimeoutError) as caught:
        still().call(Script(*errors))
    error = caught.value
    assert error is errors[2]
    trace = trace_of(error)
    assert trace is not None
    assert [r["decision"] for r in trace.receipts] == ["retry", "retry", "stop"]
    assert trace.ended is not None
    assert trace.ended["reason"] == "attempts_exhausted"
    (note,) = error.__notes__
    assert note.startswith("reprieve: gave up after 3 attempts in 1.5 s: all attempts failed (attempts_exhausted)")
    assert trace.trace_id in note
    assert clock.sleeps == [0.5, 1.0]


def test_earlier_errors_are_neither_cause_nor_context(clock: Clock) -> None:
    with pytest.raises(TimeoutError) as caught:
        still().call(Script(TimeoutError(1), TimeoutError(2), TimeoutError(3)))
    assert caught.value.__cause__ is caught.value.__context__ is None
    outside = KeyError("handled outside")
    try:
        raise outside
    except KeyError:
        with pytest.raises(TimeoutError) as caught:
            at_once().call(fails(9))
    assert caught.value.__context__ is outside


@pytest.mark.parametrize("attempts", [1, 2])
def test_the_traceback_shows_where_the_function_raised(attempts: int) -> None:
    def deep() -> None:
        raise TimeoutError("here")

    with pytest.raises(TimeoutError) as caught:
        at_once(max_attempts=attempts).call(lambda: deep())
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert frames[-1] == "deep"
    assert len(frames) < 10


def test_wrapped_raises_from_the_original(clock: Clock) -> None:
    error = TimeoutError("no")
    with pytest.raises(RetryExhausted) as caught:
        still(max_attempts=2).bind(on_give_up="wrapped").call(Script(error))
    wrapped = caught.value
    assert wrapped.__cause__ is error
    assert (wrapped.attempts, wrapped.retries, wrapped.stop_reason) == (2, 1, "attempts_exhausted")
    assert wrapped.failure is not None
    assert wrapped.failure.kind == "timeout"
    assert trace_of(wrapped) is trace_of(error) is wrapped.trace


def test_a_retry_error_crosses_processes(clock: Clock) -> None:
    with pytest.raises(RetryExhausted) as caught:
        still(max_attempts=2).bind(on_give_up="wrapped").call(fails(9))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy), copy.attempts) == (RetryExhausted, str(caught.value), 2)
    timed_out = AttemptTimeout("slow", attempts=1)
    assert str(pickle.loads(pickle.dumps(timed_out))) == "slow"


def test_a_deadline_before_the_first_attempt_has_an_error_of_its_own(clock: Clock) -> None:
    run = reprieve.Run(deadline=1)
    clock.advance(2)
    with pytest.raises(DeadlineExceeded) as caught:
        still().bind(run=run).call(function := fails(0))
    assert isinstance(caught.value, RetryError)
    assert (caught.value.stop_reason, caught.value.attempts, function.count) == ("deadline_exceeded", 0, 0)
    assert caught.value.trace is trace_of(caught.value)


def test_no_sleep_that_cannot_be_followed_by_an_attempt(clock: Clock) -> None:
    with pytest.raises(TimeoutError):
        still(total_timeout=0.5, backoff={"base": 2}).call(function := fails(9))
    assert (function.count, clock.sleeps) == (1, [])


def test_an_error_that_says_cancelled_is_raised_as_it_is() -> None:
    from concurrent.futures import CancelledError

    error = CancelledError()
    with pytest.raises(CancelledError) as caught:
        at_once().call(function := Script(error))
    assert caught.value is error
    assert function.count == 1


# --- exceptions of every kind ---


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit(), BaseException("base")])
@pytest.mark.parametrize("before", [0, 1])
def test_what_is_no_exception_is_never_retried(error: BaseException, before: int) -> None:
    lines: list[str] = []
    function = Script(*[TimeoutError()] * before, error)
    for bound in (at_once(), at_once().bind(retry_if=lambda e, f: True, sink=lines.append)):
        function = Script(*[TimeoutError()] * before, error)
        with pytest.raises(type(error)) as caught:
            bound.call(function)
        assert caught.value is error
        assert function.count == before + 1
    assert '"cancelled"' in lines[-1]


def test_a_group_with_a_cancellation_in_it_is_never_retried() -> None:
    groups = pytest.importorskip("builtins")
    if not hasattr(groups, "BaseExceptionGroup"):
        pytest.skip("no exception groups")

    class Odd(TimeoutError):
        """An `Exception`, whatever it holds, as in a backport of groups."""

        exceptions = (TimeoutError(), groups.BaseExceptionGroup("inner", [KeyboardInterrupt()]))

    mixed = groups.BaseExceptionGroup("mixed", [TimeoutError(), asyncio.CancelledError()])
    for group in (mixed, Odd("odd")):
        function = Script(group)
        with pytest.raises(BaseException) as caught:  # noqa: PT011
            at_once().bind(retry_if=lambda e, f: True).call(function)
        assert caught.value is group
        assert function.count == 1


def test_stop_iteration_is_an_error_like_any_other() -> None:
    with pytest.raises(StopIteration) as caught:
        at_once(max_attempts=2).bind(retry_if=lambda e, f: True).call(function := Script(StopIteration(7)))
    assert caught.value.value == 7
    assert function.count == 2


class Hostile(Exception):
    """Every way of looking at it raises, but for what it cannot forbid."""

    def __str__(self) -> str:
        raise RuntimeError("no str")

    __repr__ = __str__

    def __setattr__(self, name: str, value: object) -> None:
        raise RuntimeError("no setattr")

    def __getattr__(self, name: str) -> object:
        raise RuntimeError("no getattr")


class Opaque(Exception):
    """Not even its dict can be read."""

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        raise RuntimeError("no dict")


class Slotted(Exception):
    __slots__ = ("status_code",)

    def __init__(self) -> None:
        self.status_code = 500


@pytest.mark.parametrize("kind", [Hostile, Slotted])
def test_hostile_exceptions_are_classified_and_raised_with_trace_and_note(kind: type[Exception]) -> None:
    error = kind()
    with pytest.raises(type(error)) as caught:
        at_once(retry_on=["unknown", "server_error"]).call(function := Script(error))
    assert caught.value is error
    assert function.count == 3
    assert trace_of(error) is not None
    assert len(error.__notes__) == 1


def test_an_exception_that_takes_nothing_is_raised_without() -> None:
    error = Opaque("closed")
    with pytest.raises(Opaque) as caught:
        at_once().call(Script(error))
    assert caught.value is error
    assert trace_of(error) is None


def test_a_frozen_dataclass_exception_has_its_note() -> None:
    import dataclasses

    @dataclasses.dataclass(frozen=True, eq=False)
    class Frozen(Exception):
        status_code: int

    error = Frozen(500)
    # Python itself sets __traceback__ through C, so that raising works; contextlib would not.
    with pytest.raises(Frozen):
        at_once(max_attempts=1).call(Script(error))
    assert error.__notes__


def test_cyclic_causes_end() -> None:
    first, second = TimeoutError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    with pytest.raises(TimeoutError):
        at_once(max_attempts=2).call(function := Script(first))
    assert function.count == 2
    assert trace_of(second) is trace_of(first) is not None


@pytest.mark.parametrize("virtual", [False, True])
@pytest.mark.parametrize("options", [{}, {"idempotency_key": "k"}])
def test_one_exception_instance_raised_call_after_call_is_retried_each_time(
    virtual: bool, options: dict[str, str]
) -> None:
    mock = Mock(side_effect=TimeoutError("the same"))

    def call() -> None:
        for n in range(1, 4):
            with pytest.raises(TimeoutError) as caught:
                at_once(max_attempts=3).bind(**options).call(mock)
            assert mock.call_count == 3 * n
            assert len(caught.value.__notes__) == 1

    if virtual:
        with testing.virtual():
            call()
    else:
        call()
