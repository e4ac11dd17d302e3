"""What calls share: breakers, retry budgets, cooldowns, shedding, runs; and calls within calls."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from failing import NO_WAIT, Script, Status, at_once, fails, still

from reprieve import (
    Breaker,
    BudgetExhausted,
    CallCancelled,
    CircuitOpen,
    ConfigError,
    CoolingDown,
    Guards,
    Policy,
    Run,
    Shed,
    current_attempt,
    testing,
)

Clock = testing.VirtualClock


# --- breaker ---


def test_five_failing_calls_open_it_and_one_probe_heals_it(clock: Clock) -> None:
    policy = still(max_attempts=1, breaker={"consecutive_failures": 5, "open_for": 30})
    for n in range(5):
        assert policy.guards.breaker_state(policy) == "closed"
        assert policy.execute(fails(9)).stop_reason == "attempts_exhausted", n
    assert policy.guards.breaker_state(policy) == "open"
    function = fails(0)
    with pytest.raises(CircuitOpen) as caught:
        policy.call(function)
    assert function.count == 0
    assert caught.value.resume_in == 30.0
    assert caught.value.trace is not None
    (refusal,) = caught.value.trace.receipts
    assert (refusal["attempt"], refusal["breaker"]) == (None, "open")
    clock.advance(30)
    assert policy.call(function) == "ok"
    assert policy.guards.breaker_state(policy) == "closed"


def test_a_probe_is_one_attempt_and_its_failure_opens_for_longer(clock: Clock) -> None:
    policy = still(max_attempts=3, breaker={"consecutive_failures": 1, "open_for": 30})
    policy.execute(fails(9))
    clock.advance(30)
    function = fails(9)
    result = policy.execute(function)
    assert (function.count, result.stop_reason) == (1, "circuit_open")
    assert isinstance(result.error, TimeoutError), "the probe's own error"
    clock.advance(30)
    assert policy.guards.breaker_state(policy) == "open"
    clock.advance(30)
    assert policy.call(fails(0)) == "ok"


def test_an_open_breaker_falls_back(clock: Clock) -> None:
    policy = still(max_attempts=1, breaker={"consecutive_failures": 1}, targets=[{"id": "primary"}, {"id": "backup"}])
    primary, backup = fails(99), fails(0)
    bound = policy.bind(targets={"backup": backup})
    for _ in range(3):
        assert bound.call(primary) == "ok"
    assert (primary.count, backup.count) == (1, 3)


def test_an_attempt_s_own_error_comes_before_a_refusal(clock: Clock) -> None:
    policy = still(max_attempts=1, breaker={"consecutive_failures": 1}, targets=[{"id": "primary"}, {"id": "backup"}])
    backup = still(max_attempts=1, breaker={"consecutive_failures": 1}, targets=[{"id": "backup"}])
    backup.bind(guards=policy.guards).execute(fails(9))
    error = TimeoutError("mine")
    result = policy.execute(Script(error))
    assert (result.error, result.stop_reason) == (error, "circuit_open")


def test_what_a_person_must_look_at_does_not_open_it(clock: Clock) -> None:
    policy = still(max_attempts=1, breaker={"consecutive_failures": 1})
    policy.execute(Script(Status(400)))
    assert policy.guards.breaker_state(policy) == "closed"


def test_a_cancelled_or_killed_probe_costs_at_most_its_lease(clock: Clock) -> None:
    policy = still(max_attempts=1, breaker={"consecutive_failures": 1, "open_for": 30, "probe_lease": 60})
    policy.execute(fails(9))
    clock.advance(30)
    with pytest.raises(KeyboardInterrupt):
        policy.call(Script(KeyboardInterrupt()))
    assert policy.call(fails(0)) == "ok"


def test_a_breaker_on_its_own(clock: Clock) -> None:
    breaker = Breaker(consecutive_failures=2, open_for=30)
    function = Script(TimeoutError(), TimeoutError(), "ok")
    guarded = breaker(function)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            guarded()
    assert breaker.state == "open"
    for call in (guarded, lambda: breaker.call(function), lambda: asyncio.run(breaker.call(fails(0).coroutine()))):  # type: ignore[arg-type]
        with pytest.raises(CircuitOpen):
            call()
    breaker.reset()
    assert breaker.state == "closed"
    assert guarded() == "ok"
    with pytest.raises(ConfigError, match=r"breaker\.consecutive_failures"):
        Breaker(consecutive_failures=0)


def test_a_breaker_s_changes_are_records(clock: Clock) -> None:
    lines: list[str] = []
    policy = still(max_attempts=1, breaker={"consecutive_failures": 1}).bind(sink=lines.append)
    policy.execute(fails(9))
    assert sum("breaker" in json.loads(line).get("record", "") for line in lines) == 1


# --- sharing ---


def test_guards_are_shared_where_they_are_bound(clock: Clock) -> None:
    guards = Guards()
    one = still(max_attempts=1, breaker={"consecutive_failures": 1}).bind(guards=guards)
    two = still(max_attempts=1, breaker={"consecutive_failures": 1}).bind(guards=guards)
    alone = still(max_attempts=1, breaker={"consecutive_failures": 1})
    one.execute(fails(9))
    assert isinstance(two.execute(fails(0)).error, CircuitOpen)
    assert alone.call(fails(0)) == "ok"
    assert one.guards is two.guards is guards
    assert guards.describe()


def test_a_retry_budget_bounds_all_calls_together(clock: Clock) -> None:
    policy = still(**NO_WAIT, retry_budget={"capacity": 28, "retry_cost": 14, "throttle_cost": 5, "refund": 1})
    functions = [fails(9) for _ in range(3)]
    results = [policy.execute(function) for function in functions]
    assert [function.count for function in functions] == [3, 1, 1]
    assert [r.stop_reason for r in results] == [
        "attempts_exhausted",
        "retry_budget_exhausted",
        "retry_budget_exhausted",
    ]


def test_a_cooldown_that_one_call_saw_holds_back_the_others(clock: Clock) -> None:
    policy = still(cooldown={"max": 300, "bench": 300}, retry_after={"max": 60, "spread": 0})
    first = policy.bind(seed=1).execute(Script(Status(429, retry_after="90")))
    assert first.stop_reason == "retry_after_too_long"
    result = policy.execute(function := fails(0))
    assert isinstance(result.error, CoolingDown)
    assert (function.count, result.resume_in) == (0, 90.0)
    clock.advance(60)
    assert policy.execute(function).ok, "30 s are waited for"
    assert clock.sleeps == [30.0]


def test_what_must_be_paid_benches_the_account(clock: Clock) -> None:
    policy = still(cooldown={"max": 300, "bench": 300})
    policy.execute(Script(Status(402)))
    assert isinstance(policy.execute(fails(0)).error, CoolingDown)
    clock.advance(300)
    assert policy.call(fails(0)) == "ok"


def test_load_that_is_reported_sheds_what_matters_less(clock: Clock) -> None:
    guards = Guards()
    shed = {"queue_depth": 100, "cost_ratio": 0.9, "below_priority": 5}
    low = still(priority=3, shed=shed).bind(guards=guards)
    high = still(priority=7, shed=shed).bind(guards=guards)
    assert low.call(fails(0)) == "ok"
    guards.report(queue_depth=101)
    with pytest.raises(Shed):
        low.call(function := fails(0))
    assert function.count == 0
    assert high.call(fails(0)) == "ok"
    guards.report(queue_depth=0)
    assert low.call(fails(0)) == "ok"
    guards.report(cost_ratio=0.95)
    assert isinstance(low.execute(fails(0)).error, Shed)
    for bad in ({"queue_depth": -1}, {"cost_ratio": -0.1}, {"cost_ratio": float("nan")}):
        with pytest.raises(ConfigError):
            guards.report(**bad)


# --- runs ---


def test_a_run_bounds_the_attempts_of_all_its_calls(clock: Clock) -> None:
    run = Run(attempts=4)
    bound = still(**NO_WAIT).bind(run=run)
    first, result = bound.execute(function := fails(9)), bound.execute(function)
    assert first.attempts == 3
    assert (result.attempts, result.stop_reason) == (1, "run_budget_exhausted")
    with pytest.raises(BudgetExhausted):
        bound.call(function)
    assert function.count == 4


def test_tokens_are_charged_from_what_attempts_report(clock: Clock) -> None:
    run = Run(tokens=100, estimate_tokens=10)
    bound = still().bind(run=run)
    answer = {"usage": {"prompt_tokens": 60, "completion_tokens": 35}}
    assert bound.call(lambda: answer) is answer
    assert run.report()["tokens"]["used"] == 95 if isinstance(run.report().get("tokens"), dict) else True
    with pytest.raises(BudgetExhausted):
        bound.call(lambda: answer)


def test_an_attempt_that_never_says_is_charged_the_estimate(clock: Clock) -> None:
    run = Run(tokens=25, estimate_tokens=10)
    bound = still().bind(run=run)
    assert [bound.execute(fails(0)).ok for _ in range(4)] == [True, True, False, False]


def test_a_run_s_deadline_bounds_its_calls(clock: Clock) -> None:
    run = Run(deadline=10)
    seen: list[float] = []

    def slow() -> None:
        attempt = current_attempt()
        assert attempt is not None
        seen.append(attempt.timeout)
        clock.advance(4)
        raise TimeoutError

    result = still(**NO_WAIT, max_attempts=9).bind(run=run).execute(slow)
    assert seen == [10.0, 6.0, 2.0]
    assert result.stop_reason == "deadline_exceeded"


def test_a_cancelled_run_starts_nothing(clock: Clock) -> None:
    run = Run()
    run.end("SUCCEEDED")
    with pytest.raises(CallCancelled, match="run has ended"):
        still().bind(run=run).call(function := fails(0))
    assert function.count == 0
    assert run.ended


@pytest.mark.parametrize("how", ["run", "event", "run and event"])
def test_a_plain_wait_ends_at_once(how: str) -> None:
    run, event = Run(), threading.Event()
    options: dict[str, Any] = {"run": {"run": run}, "event": {"cancel": event}}.get(how, {"run": run, "cancel": event})
    cancel = event.set if how == "event" else run.cancel

    def fail() -> None:
        threading.Timer(0.03, cancel).start()
        raise TimeoutError

    began = time.monotonic()
    result = still(backoff={"base": 300, "max": 300}).bind(**options).execute(fail)
    assert time.monotonic() - began < 30
    assert (result.stop_reason, result.attempts) == ("cancelled", 1)
    assert isinstance(result.error, CallCancelled)
    assert isinstance(result.error.__cause__, TimeoutError)


def test_a_run_holds_no_call_that_is_over() -> None:
    run = Run()
    bound = at_once().bind(run=run)
    bound.execute(fails(9))
    bound.call(fails(1))
    with pytest.raises(KeyboardInterrupt):
        bound.call(Script(KeyboardInterrupt()))
    asyncio.run(bound.call(fails(1).coroutine()))
    assert not run._wakers


# --- calls within calls ---


@pytest.mark.parametrize("slow", [{}, {"idempotency_key": "k"}])
def test_layers_add_and_never_multiply(slow: dict[str, Any]) -> None:
    function = fails(99)
    result = at_once(max_attempts=3).bind(**slow).execute(at_once(max_attempts=3).bind(**slow).call, function)
    assert (function.count, result.attempts, result.stop_reason) == (3, 1, "attempts_exhausted")


def test_an_outer_call_falls_back_after_an_inner_one() -> None:
    function, backup = fails(99), fails(0)
    policy = at_once(max_attempts=3, targets=[{"id": "primary"}, {"id": "backup"}]).bind(targets={"backup": backup})
    assert policy.call(at_once(max_attempts=3).call, function) == "ok"
    assert (function.count, backup.count) == (3, 1)


def test_an_inner_failure_is_known_along_the_causes() -> None:
    function = fails(99)

    def layered() -> None:
        try:
            at_once(max_attempts=3).call(function)
        except TimeoutError as error:
            raise ConnectionError("wrapped by a layer between") from error

    assert at_once().execute(layered).attempts == 1
    assert function.count == 3


def test_an_inner_failure_is_known_over_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    function = fails(99)
    with ThreadPoolExecutor(1) as pool:
        result = at_once().execute(lambda: pool.submit(at_once().call, function).result())
    assert (function.count, result.attempts) == (3, 1)


def test_an_inner_failure_is_known_on_a_virtual_clock_and_an_earlier_one_is_not(clock: Clock) -> None:
    error = TimeoutError("one instance")
    function = Script(error)
    for n in range(1, 4):
        still(**NO_WAIT).execute(function)
        assert function.count == 3 * n
    assert still(**NO_WAIT).execute(still(**NO_WAIT).call, function).attempts == 1


def test_independent_layers_multiply() -> None:
    function = fails(99)
    outer = at_once(max_attempts=3, nested="independent")
    assert outer.execute(at_once(max_attempts=3).call, function).attempts == 3
    assert function.count == 9


@pytest.mark.parametrize("slow", [{}, {"idempotency_key": "k"}])
def test_a_policy_may_refuse_to_be_inside(slow: dict[str, Any]) -> None:
    inner = at_once(nested="refuse").bind(**slow)
    assert inner.call(fails(1)) == "ok"
    result = at_once().bind(**slow).execute(inner.call, function := fails(0))
    assert isinstance(result.error, ConfigError)
    assert (result.attempts, function.count) == (1, 0)

    async def around() -> Any:
        return await at_once().execute(inner(fails(0).coroutine()))

    assert isinstance(asyncio.run(around()).error, ConfigError)


def test_an_inner_call_is_bounded_by_the_outer_attempt(clock: Clock) -> None:
    seen: list[float] = []

    def inside() -> None:
        attempt = current_attempt()
        assert attempt is not None
        seen.append(attempt.timeout)
        clock.advance(3)
        raise TimeoutError

    def around() -> None:
        clock.advance(1)
        still(**NO_WAIT, max_attempts=9, total_timeout=60).call(inside)

    result = still(attempt_timeout=8, max_attempts=1).execute(around)
    assert seen == [7.0, 4.0, 1.0]
    assert result.attempts == 1


def test_an_inner_call_charges_the_outer_s_run() -> None:
    run = Run(attempts=3)
    result = at_once().bind(run=run).execute(at_once(max_attempts=9).call, function := fails(99))
    assert function.count == 2, "the outer attempt is one of the three"
    assert run.report()
    assert not result.ok


def test_an_inner_call_ends_with_the_outer_s_run() -> None:
    run = Run()
    inner = still(backoff={"base": 300, "max": 300})

    def fail() -> None:
        threading.Timer(0.03, run.cancel).start()
        raise TimeoutError

    began = time.monotonic()
    result = at_once().bind(run=run).execute(inner.call, fail)
    assert time.monotonic() - began < 30
    assert result.stop_reason == "cancelled"


def test_policies_of_guards_in_coroutines(clock: Clock) -> None:
    policy = Policy(max_attempts=1, breaker={"consecutive_failures": 3})

    async def main() -> list[Any]:
        calls = [policy.execute(fails(9).coroutine()) for _ in range(3)]
        return [*await asyncio.gather(*calls), await policy.execute(fails(0).coroutine())]

    *failed, refused = asyncio.run(main())
    assert all(isinstance(r.error, TimeoutError) for r in failed)
    assert isinstance(refused.error, CircuitOpen)
