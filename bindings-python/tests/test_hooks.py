"""The user's own functions beside a call: `classify`, `retry_if`, `backoff`, `targets`; and what happens when one
raises: the call's own result wins, the fault is counted and logged once."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any

import pytest
from failing import Script, Status, at_once, fails, still

import reprieve
from reprieve import Failure, Policy, _faults, classify, testing

Clock = testing.VirtualClock


class Odd(Exception):
    pass


# --- classify ---


@pytest.mark.parametrize(
    ("said", "attempts"), [("rate_limit", 3), ("bad_request", 1), (None, 1), (classify(status=503), 3)]
)
def test_classify_names_a_kind_or_a_failure_or_nothing(said: Any, attempts: int) -> None:
    result = at_once().bind(classify=lambda error: said).execute(Script(Odd()))
    assert result.attempts == attempts
    assert result.failure is not None
    assert result.failure.kind == ("unknown" if said is None else getattr(said, "kind", said))
    if isinstance(said, str):
        assert result.failure.decided_by == "classify"


def test_classify_keeps_what_else_is_known(clock: Clock) -> None:
    error = Status(500, retry_after="3")
    result = still().bind(classify=lambda e: "rate_limit").execute(Script(error))
    assert result.failure is not None
    assert (result.failure.kind, result.failure.retry_after) == ("rate_limit", 3.0)


def test_classify_gets_the_error_itself() -> None:
    seen: list[Exception] = []
    error = Odd()
    at_once().bind(classify=seen.append).execute(Script(error))
    assert seen == [error]


# --- retry_if ---


def test_retry_if_has_the_last_word_on_what_is_tried_again() -> None:
    def only_odd(error: Exception, failure: Failure) -> bool:
        return isinstance(error, Odd)

    bound = at_once().bind(retry_if=only_odd)
    assert bound.execute(function := Script(Odd())).attempts == function.count == 3
    assert bound.execute(function := Script(TimeoutError())).attempts == function.count == 1


def test_retry_if_without_an_answer_leaves_it_to_the_policy() -> None:
    bound = at_once().bind(retry_if=lambda error, failure: None)
    assert bound.execute(Script(TimeoutError())).attempts == 3
    assert bound.execute(Script(Odd())).attempts == 1


@pytest.mark.parametrize("truthy", [1, "yes", [0]])
def test_retry_if_answers_any_truth_value(truthy: Any) -> None:
    assert at_once().bind(retry_if=lambda e, f: truthy).execute(Script(Odd())).attempts == 3


def test_retry_if_cannot_revive_a_cancellation_or_a_deadline(clock: Clock) -> None:
    from concurrent.futures import CancelledError

    bound = still(total_timeout=1, backoff={"base": 5}).bind(retry_if=lambda e, f: True)
    assert bound.execute(Script(CancelledError())).stop_reason == "cancelled"
    assert bound.execute(Script(Odd())).stop_reason == "deadline_exceeded"


# --- backoff ---


def test_backoff_gets_the_failure_and_the_number_on_the_target(clock: Clock) -> None:
    seen: list[tuple[str, int]] = []

    def wait(failure: Failure, n: int) -> float:
        seen.append((failure.kind, n))
        return 10 * n

    still(max_attempts=4).bind(backoff=wait).execute(fails(9))
    assert seen[:3] == [("timeout", 1), ("timeout", 2), ("timeout", 3)]
    assert clock.sleeps == [10.0, 20.0, 20.0]  # capped by the curve, not jittered


def test_backoff_without_an_answer_leaves_it_to_the_policy(clock: Clock) -> None:
    still().bind(backoff=lambda failure, n: None).execute(fails(1))
    assert clock.sleeps == [0.5]


def test_backoff_never_cuts_a_retry_after_short(clock: Clock) -> None:
    policy = still(retry_after={"spread": 0})
    policy.bind(backoff=lambda failure, n: 1).execute(Script(Status(429, retry_after="9"), "ok"))
    assert clock.sleeps == [9.0]


# --- targets ---


def test_a_target_has_a_function_of_its_own_with_the_same_arguments() -> None:
    primary, backup = fails(9), fails(0, "from the backup")
    policy = at_once(max_attempts=2, targets=[{"id": "primary"}, {"id": "backup"}])
    assert policy.bind(targets={"backup": backup}).call(primary, 1, two=2) == "from the backup"
    assert (primary.count, backup.calls) == (2, [((1,), {"two": 2})])


def test_without_a_function_of_its_own_a_target_gets_the_call_s() -> None:
    function = fails(2)
    policy = at_once(max_attempts=2, targets=[{"id": "primary"}, {"id": "backup"}])
    result = policy.execute(function)
    assert (result.value, function.count) == ("ok", 3)
    assert [r["target"] for r in result.trace.receipts] == ["primary", "primary", "backup"]
    assert result.trace.receipts[-1]["fallback_used"]


# --- hooks that raise ---


def broken(*_: Any) -> Any:
    raise ZeroDivisionError("a fault of the hook's own")


class NoTruth:
    def __bool__(self) -> bool:
        raise ZeroDivisionError("neither true nor false")


HOOKS: list[tuple[str, Callable[..., Any]]] = [
    ("classify", broken),
    ("classify", lambda error: "no such kind"),
    ("classify", lambda error: 7),
    ("retry_if", broken),
    ("retry_if", lambda error, failure: NoTruth()),
    ("backoff", broken),
    ("backoff", lambda failure, n: math.nan),
    ("backoff", lambda failure, n: -1),
    ("backoff", lambda failure, n: "soon"),
    ("backoff", lambda failure, n: True),
    ("backoff", lambda failure, n: object()),
    ("backoff", lambda: 1),
    ("sink", broken),
    ("on_event", broken),
]


@pytest.mark.parametrize(("role", "hook"), HOOKS)
def test_a_hook_that_raises_changes_nothing_and_is_counted(role: str, hook: Any, clock: Clock) -> None:
    before = reprieve.faults().get(role, 0)
    bound = still().bind(**{role: hook})
    assert bound.call(fails(2)) == "ok"
    assert clock.sleeps == [0.5, 1.0]
    error = TimeoutError("mine")
    result = bound.execute(Script(error))
    assert (result.error, result.attempts, result.stop_reason) == (error, 3, "attempts_exhausted")
    assert error.__context__ is None
    assert reprieve.faults()[role] > before


def test_a_fault_is_logged_once_for_each_function(caplog: pytest.LogCaptureFixture) -> None:
    def breaks_here(line: str) -> None:
        raise ZeroDivisionError

    def breaks_there(line: str) -> None:
        raise ZeroDivisionError

    with caplog.at_level(logging.WARNING, logger="reprieve"):
        for sink in (breaks_here, breaks_there, breaks_here):
            at_once().bind(sink=sink).execute(fails(9))
    assert [r.getMessage().count("breaks_") for r in caplog.records] == [1, 1]
    assert "sink" in caplog.records[0].getMessage()


def test_where_too_many_functions_have_faults_those_of_more_are_only_counted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_faults, "_logged", set())
    monkeypatch.setattr(_faults, "MOST_LOGGED", 2)
    before = reprieve.faults().get("sink", 0)
    with caplog.at_level(logging.WARNING, logger="reprieve"):
        for name in ("one", "two", "three", "three"):
            _faults.note("sink", Named(name), Odd())
    assert ["one" in caplog.text, "two" in caplog.text, "three" in caplog.text] == [True, True, False]
    assert reprieve.faults()["sink"] == before + 4


class Named:
    def __init__(self, name: str) -> None:
        self.__qualname__ = name


def test_a_hook_that_exits_is_not_held_back() -> None:
    with pytest.raises(SystemExit):
        at_once().bind(retry_if=Script(SystemExit(3))).call(fails(9))


def test_is_retriable_asks_policy_and_classify() -> None:
    policy = Policy()
    assert policy.is_retriable(TimeoutError())
    assert not policy.is_retriable(Odd())
    assert not policy.is_retriable(KeyboardInterrupt())
    assert policy.bind(classify=lambda e: "rate_limit").is_retriable(Odd())
    assert not policy.is_retriable(Status(500, x_should_retry="false"))


def test_what_a_call_has_retried_is_not_retriable() -> None:
    error = at_once().execute(fails(9)).error
    assert error is not None
    assert not Policy().is_retriable(error)
    assert Policy(nested="independent").is_retriable(error)
