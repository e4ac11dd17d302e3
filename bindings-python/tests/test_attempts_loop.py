"""`attempts()`: a loop with a `with` block for an attempt, plain and async."""

# ruff: noqa: PT012 - the loop is what raises

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from failing import at_once, decisions, still

from reprieve import CallCancelled, Policy, current_attempt, testing, trace_of

Clock = testing.VirtualClock


def test_the_block_is_tried_again_until_it_passes(clock: Clock) -> None:
    numbers = []
    for attempt in still().attempts():
        with attempt as current:
            assert current is current_attempt()
            assert (attempt.number, attempt.target, attempt.timeout) == (current.number, "primary", current.timeout)
            numbers.append((current.number, current.is_last))
            if current.number < 3:
                raise TimeoutError
    assert numbers == [(1, False), (2, False), (3, True)]
    assert clock.sleeps == [0.5, 1.0]
    assert current_attempt() is None


def test_the_last_failure_goes_on(clock: Clock) -> None:
    errors: list[TimeoutError] = []
    with pytest.raises(TimeoutError) as caught:
        for attempt in still().attempts():
            with attempt:
                errors.append(TimeoutError())
                raise errors[-1]
    assert caught.value is errors[2]
    trace = trace_of(caught.value)
    assert trace is not None
    assert len(trace.receipts) == 3


def test_wrapped_goes_on_in_its_place() -> None:
    from reprieve import RetryExhausted

    with pytest.raises(RetryExhausted) as caught:
        for attempt in at_once(max_attempts=1).bind(on_give_up="wrapped").attempts():
            with attempt:
                raise TimeoutError
    assert isinstance(caught.value.__cause__, TimeoutError)


@pytest.mark.parametrize("leave", ["break", "return", "continue"])
def test_leaving_the_block_without_an_error_is_a_success(leave: str) -> None:
    lines: list[str] = []

    def loop() -> None:
        for attempt in at_once().bind(sink=lines.append).attempts():
            with attempt:
                if leave == "break":
                    break
                if leave == "return":
                    return
                continue

    loop()
    assert len(lines) == 2
    assert '"succeeded"' in lines[-1] or '"success"' in lines[-1]
    assert current_attempt() is None


def test_an_error_swallowed_inside_is_a_success() -> None:
    rounds = 0
    for attempt in at_once().attempts():
        with attempt:
            rounds += 1
            try:
                raise TimeoutError
            except TimeoutError:
                pass
    assert rounds == 1


def test_a_round_without_its_block_is_refused() -> None:
    with pytest.raises(RuntimeError, match="`with` block"):
        for _attempt in at_once().attempts():
            pass


def test_an_error_beside_the_block_ends_the_call() -> None:
    lines: list[str] = []
    with pytest.raises(KeyError):
        for attempt in at_once().bind(sink=lines.append).attempts():
            raise KeyError(attempt.number)
    gc.collect()
    assert '"cancelled"' in lines[-1]
    assert current_attempt() is None


def test_attempts_are_one_call() -> None:
    attempts = at_once().attempts()
    for attempt in attempts:
        with attempt:
            pass
    with pytest.raises(RuntimeError, match="one call"):
        next(iter(attempts))


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(), GeneratorExit()])
def test_what_is_no_exception_goes_through(stop: BaseException) -> None:
    rounds = 0
    with pytest.raises(type(stop)):
        for attempt in at_once().attempts():
            with attempt:
                rounds += 1
                raise stop
    assert rounds == 1
    assert current_attempt() is None


def test_a_set_event_ends_the_loop(clock: Clock) -> None:
    import threading

    event = threading.Event()
    with pytest.raises(CallCancelled):
        for attempt in still().bind(cancel=event).attempts():
            with attempt:
                event.set()
                raise TimeoutError


async def _loop(policy: Any, fail: int, seen: list[int]) -> None:
    async for attempt in policy.attempts():
        with attempt as current:
            assert current_attempt() is current
            await asyncio.sleep(0)
            seen.append(attempt.number)
            if attempt.number <= fail:
                raise TimeoutError


def test_the_same_in_a_coroutine(clock: Clock) -> None:
    seen: list[int] = []
    asyncio.run(_loop(still(), 2, seen))
    assert (seen, clock.sleeps) == ([1, 2, 3], [0.5, 1.0])
    with pytest.raises(TimeoutError):
        asyncio.run(_loop(still(max_attempts=2), 9, seen))


def test_the_same_under_trio(clock: Clock) -> None:
    trio = pytest.importorskip("trio")

    async def loop() -> None:
        async for attempt in still().attempts():
            with attempt:
                await trio.sleep(0)
                if attempt.number < 3:
                    raise TimeoutError

    trio.run(loop)
    assert clock.sleeps == [0.5, 1.0]


def test_break_in_a_coroutine_ends_the_call() -> None:
    lines: list[str] = []

    async def main() -> None:
        async for attempt in at_once().bind(sink=lines.append).attempts():
            with attempt:
                break
        assert current_attempt() is None

    asyncio.run(main())
    assert len(lines) == 2


def test_both_loops_decide_alike(clock: Clock) -> None:
    def trace(error: BaseException) -> Any:
        found = trace_of(error)
        assert found is not None
        return decisions(found.receipts)

    policy = Policy(max_attempts=4).bind(seed=11)
    with pytest.raises(TimeoutError) as plain:
        for attempt in policy.attempts():
            with attempt:
                raise TimeoutError
    with pytest.raises(TimeoutError) as in_coroutine:
        asyncio.run(_loop(policy, 9, []))
    assert trace(plain.value) == trace(in_coroutine.value)
