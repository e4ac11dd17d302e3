"""Attempts beside each other: who wins, what becomes of the others, and that nothing of them is left.

In virtual time: what joins an attempt, and what ends before that, is a matter of timers alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import jumping
import pytest
from failing import NO_WAIT

from reprieve import AttemptTimeout, CallCancelled, Policy, Run, current_attempt, testing, trace_of

pytestmark = [pytest.mark.filterwarnings("error")]

SOON = 0.005
USER = contextvars.ContextVar("USER", default="nobody")


def hedging(after: float = SOON, most: int = 1, **fields: Any) -> Policy:
    return Policy(**{**NO_WAIT, "hedge": {"after": after, "max": most}, **fields})


class Slow:
    """A function whose attempts wait until they are told how to end, and say how they were left."""

    def __init__(self, ends: dict[int, Any] | None = None) -> None:
        self.ends = ends or {}
        self.started: list[int] = []
        self.left: dict[int, str] = {}
        self.again = asyncio.Event()

    async def __call__(self) -> Any:
        attempt = current_attempt()
        assert attempt is not None
        number = attempt.number
        self.started.append(number)
        self.again.set()
        try:
            end = self.ends.get(number, asyncio.Event().wait)
            value = await end() if callable(end) else end
            if isinstance(value, Exception):
                raise value
            self.left[number] = "answered"
            return value
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # unwinding takes its time
            self.left[number] = "cancelled"
            raise
        finally:
            seen = current_attempt()
            assert seen is None or seen.number == number, "each attempt sees itself"

    async def attempts(self, count: int) -> None:
        """Waits until so many have started."""
        while len(self.started) < count:
            self.again.clear()
            await self.again.wait()


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Runs it; no task is left, and asyncio has nothing to complain of."""
    unheard: list[Any] = []

    async def watched() -> Any:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
        try:
            return await main()
        finally:
            assert asyncio.all_tasks() == {asyncio.current_task()}

    try:
        return jumping.run(watched)
    finally:
        gc.collect()
        assert not unheard


def shown(error_or_result: Any) -> list[tuple[Any, ...]]:
    trace = getattr(error_or_result, "trace", None) or trace_of(error_or_result)
    return [(r["attempt"], r["outcome"], r["decision"]) for r in trace.receipts]


def test_the_hedge_wins_and_the_slow_one_has_unwound() -> None:
    slow = Slow({2: "fast"})

    async def main() -> Any:
        result = await hedging().execute(slow)
        assert slow.left == {1: "cancelled", 2: "answered"}
        return result

    result = run(main)
    assert (result.value, result.attempts) == ("fast", 2)
    assert shown(result) == [(1, "cancelled", "superseded"), (2, "success", "done")]


def test_the_first_one_may_still_win() -> None:
    async def main() -> Any:
        slow = Slow()

        async def once_joined() -> str:
            await slow.attempts(2)
            return "first"

        slow.ends[1] = once_joined
        result = await hedging().execute(slow)
        assert slow.left == {1: "answered", 2: "cancelled"}
        return result

    result = run(main)
    assert result.value == "first"
    assert shown(result) == [(2, "cancelled", "superseded"), (1, "success", "done")]


def test_what_is_fast_is_sent_once() -> None:
    async def main() -> Any:
        slow = Slow({1: "fast"})
        assert await hedging(after=30).call(slow) == "fast"
        assert slow.started == [1]

    run(main)


def test_no_more_than_max_join() -> None:
    async def main() -> Any:
        slow = Slow({3: asyncio.sleep})  # a TypeError: `sleep` wants to know how long

        async def later() -> str:
            await asyncio.sleep(10 * SOON)
            return "late"

        slow.ends[3] = later
        assert await hedging(most=2).call(slow) == "late"
        assert slow.started == [1, 2, 3]
        assert slow.left == {1: "cancelled", 2: "cancelled", 3: "answered"}

    run(main)


@pytest.mark.parametrize("way", ["call", "decorated", "start", "answered", "bound"])
def test_every_way_to_call_a_coroutine_function(way: str) -> None:
    async def main() -> Any:
        slow, policy = Slow({2: "fast"}), hedging()

        async def function() -> Any:
            return await slow()

        made: Awaitable[Any]
        match way:
            case "call":
                made = policy.call(function)
            case "decorated":
                made = policy(function)()
            case "start":
                made = policy.start(function)
            case "answered":  # as the methods of async clients do
                made = policy.call(lambda: function())
            case _:
                made = policy.bind(scene="s").call(function)
        assert await made == "fast"
        assert slow.started == [1, 2]
        assert slow.left == {1: "cancelled", 2: "answered"}

    run(main)


def test_each_has_a_context_of_its_own() -> None:
    seen: list[str] = []

    async def main() -> Any:
        USER.set("caller")
        slow = Slow({2: "fast"})

        async def function() -> Any:
            seen.append(USER.get())
            USER.set(f"attempt {len(seen)}")
            return await slow()

        assert await hedging().call(function) == "fast"
        assert USER.get() == "caller"
        assert current_attempt() is None

    run(main)
    assert seen == ["caller", "caller"]


def test_a_failure_waits_for_its_sibling() -> None:
    async def main() -> Any:
        slow = Slow({2: ConnectionError("second")})

        async def after_the_failure() -> str:
            await slow.attempts(2)
            await asyncio.sleep(SOON)
            return "first"

        slow.ends[1] = after_the_failure
        return await hedging().execute(slow)

    result = run(main)
    assert result.value == "first"
    assert shown(result) == [(2, "failure", "pending"), (1, "success", "done")]


def test_the_last_failure_is_raised_as_it_is() -> None:
    errors = {1: TimeoutError("first"), 2: ConnectionError("second")}

    async def main() -> Any:
        slow = Slow({2: errors[2]})

        async def last() -> Any:
            await slow.attempts(2)
            await asyncio.sleep(SOON)
            return errors[1]

        slow.ends[1] = last
        await hedging(max_attempts=1).call(slow)

    with pytest.raises(TimeoutError) as caught:
        run(main)
    assert caught.value is errors[1]
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert shown(caught.value) == [(2, "failure", "pending"), (1, "failure", "stop")]


def test_every_attempt_has_its_own_timeout() -> None:
    async def main() -> Any:
        slow = Slow({3: "third"})
        result = await hedging(attempt_timeout=4 * SOON, max_attempts=2).execute(slow)
        assert slow.left == {1: "cancelled", 2: "cancelled", 3: "answered"}
        return result

    result = run(main)
    assert result.value == "third"
    assert shown(result) == [(1, "failure", "pending"), (2, "failure", "retry"), (3, "success", "done")]


def test_two_timeouts_are_one_timeout() -> None:
    async def main() -> Any:
        await hedging(attempt_timeout=3 * SOON, max_attempts=1).call(Slow())

    with pytest.raises(AttemptTimeout, match="attempt 2 took longer") as caught:
        run(main)
    assert caught.value.attempts == 2


def test_the_hedge_calls_the_function_of_its_target() -> None:
    async def main() -> Any:
        slow, other = Slow({3: "backup"}), Slow({1: ConnectionError("primary")})
        policy = hedging(max_attempts=1, targets=[{"id": "primary"}, {"id": "backup"}])

        async def backup() -> Any:
            return await slow()

        assert await policy.bind(targets={"backup": backup}).call(other) == "backup"
        assert (other.started, slow.started) == ([1], [2, 3])

    run(main)


# --- cancellation ---


@pytest.mark.parametrize("by", ["task", "handle", "run", "event"])
def test_a_cancellation_reaches_all(by: str) -> None:
    async def main() -> Any:
        slow, run_, event = Slow(), Run(), threading.Event()
        policy = hedging()
        bound = policy.bind(run=run_) if by == "run" else policy.bind(cancel=event) if by == "event" else policy
        handle = bound.start(slow)
        task = asyncio.ensure_future(handle)
        await slow.attempts(2)
        match by:
            case "task":
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            case "handle":
                handle.cancel("enough")
                with pytest.raises(CallCancelled, match="enough"):
                    await task
            case "run":
                run_.cancel("enough")
                with pytest.raises(CallCancelled):
                    await task
            case _:
                event.set()
                with pytest.raises(CallCancelled):
                    await task
        assert slow.left == {1: "cancelled", 2: "cancelled"}
        assert handle.state == "ended"

    run(main)


def test_the_caller_is_cancelled() -> None:
    lines: list[str] = []

    async def main() -> Any:
        slow = Slow()
        task = asyncio.ensure_future(hedging().bind(sink=lines.append).call(slow))
        await slow.attempts(2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert slow.left == {1: "cancelled", 2: "cancelled"}

    run(main)
    assert len(lines) == 3, "two receipts and the end"
    assert '"outcome":"cancelled"' in lines[-1]


def test_a_cancellation_while_the_losers_unwind_is_not_lost() -> None:
    async def main() -> Any:
        slow, unwinding, go = Slow({2: "fast"}), asyncio.Event(), asyncio.Event()

        async def stubborn() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                unwinding.set()
                await go.wait()

        slow.ends[1] = stubborn
        task = asyncio.ensure_future(hedging().call(slow))
        await unwinding.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done(), "it waits for what unwinds"
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main)


def test_a_handle_that_is_cancelled_before_anything_has_run() -> None:
    async def main() -> Any:
        slow = Slow()
        handle = hedging().start(slow)
        await asyncio.sleep(0)
        handle.cancel("at once")
        with pytest.raises(CallCancelled, match="at once"):
            await handle
        assert set(slow.left.values()) <= {"cancelled"}

    run(main)


# --- what losers do ---


@pytest.mark.parametrize("does", ["raises", "answers"])
def test_what_a_loser_makes_of_its_cancellation_is_nobodys(does: str) -> None:
    async def main() -> Any:
        slow = Slow({2: "fast"})

        async def stubborn() -> Any:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return ValueError("too late") if does == "raises" else "too late"

        slow.ends[1] = stubborn
        assert await hedging().call(slow) == "fast"

    run(main)


def test_nothing_is_kept_alive(no_gc: None) -> None:
    class Answer:
        pass

    async def main() -> Any:
        slow = Slow({2: Answer()})
        answer = await hedging().call(slow)
        slow.ends.clear()
        return weakref.ref(answer)

    assert run_bare(main)() is None


def test_no_error_is_in_a_cycle(no_gc: None) -> None:
    class Oops(Exception):
        pass

    async def main() -> Any:
        async def fails() -> None:
            await asyncio.sleep(2 * SOON)
            raise Oops

        try:
            await hedging(max_attempts=1).call(fails)
        except Oops as error:
            return weakref.ref(error)

    assert run_bare(main)() is None


def run_bare(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


# --- limits ---


def test_an_empty_budget_never_fails_the_first_attempt() -> None:
    async def main() -> Any:
        slow = Slow()

        async def later() -> str:
            await asyncio.sleep(4 * SOON)
            return "late"

        slow.ends[1] = later
        result = await hedging(retry_budget={"capacity": 1}).execute(slow)
        assert slow.started == [1]
        return result

    result = run(main)
    assert result.value == "late"
    assert [(r["attempt"], r["decision"], r["reason"]) for r in result.trace.receipts] == [
        (None, "pending", "retry_budget_exhausted"),
        (1, "done", None),
    ]


def test_hedges_are_the_runs_attempts() -> None:
    async def main() -> Any:
        shared = Run(attempts=3)
        for _ in range(2):
            slow = Slow({2: "fast"})

            async def later() -> str:
                await asyncio.sleep(4 * SOON)
                return "late"

            slow.ends[1] = later
            await hedging().bind(run=shared).call(slow)
        return shared

    assert run(main).report()["attempts"]["used"] == 3


def test_a_plain_function_is_never_joined() -> None:
    calls = 0

    def slow() -> str:
        nonlocal calls
        calls += 1
        threading.Event().wait(3 * SOON)
        return "done"

    assert hedging().call(slow) == "done"
    assert hedging().execute(slow).attempts == 1
    assert calls == 2


def test_requests_are_prepared_and_answers_checked_in_each() -> None:
    asked: list[tuple[int, str]] = []

    async def main() -> Any:
        slow = Slow({2: "wrong", 4: "right"})

        async def function(*, model: str) -> Any:
            attempt = current_attempt()
            assert attempt is not None
            asked.append((attempt.number, model))
            return await slow()

        async def prepare(request: dict[str, Any], target: str) -> dict[str, Any]:
            return {"model": f"{request['model']} for {target}"}

        async def after_the_check() -> Any:
            await slow.attempts(2)
            await asyncio.sleep(SOON)
            return TimeoutError("first")

        slow.ends[1] = after_the_check
        bound = hedging().bind(prepare=prepare, check=lambda value: value != "wrong")
        result = await bound.execute(function, model="m")
        assert slow.left == {2: "answered", 3: "cancelled", 4: "answered"}
        return result

    result = run(main)
    assert result.value == "right"
    assert asked == [(number, "m for primary") for number in (1, 2, 3, 4)]
    assert [(r["attempt"], r["kind"], r["decision"]) for r in result.trace.receipts] == [
        (2, "invalid_output", "pending"),
        (1, "timeout", "retry"),
        (3, None, "superseded"),
        (4, None, "done"),
    ]


def test_an_answer_that_is_being_checked_is_not_its_siblings() -> None:
    """What fails while another's answer is checked has not failed in a check."""

    async def main() -> Any:
        slow, checking = Slow({2: "second"}), asyncio.Event()

        async def fails_meanwhile() -> Any:
            await checking.wait()
            return KeyError("not an answer's")

        async def check(value: str) -> None:
            checking.set()
            await asyncio.sleep(4 * SOON)
            raise ValueError("no answer")

        slow.ends[1] = fails_meanwhile
        return await hedging(max_attempts=1).bind(check=check).execute(slow)

    result = run(main)
    kinds = [(r["attempt"], r["kind"], r["decision"]) for r in result.trace.receipts]
    assert kinds == [(1, "unknown", "pending"), (2, "invalid_output", "stop")]


def test_under_trio_no_attempt_is_joined() -> None:
    trio = pytest.importorskip("trio")

    async def slow() -> str:
        await trio.sleep(4 * SOON)
        return "late"

    async def main() -> Any:
        return await hedging().execute(slow)

    result = trio.run(main)
    assert (result.value, result.attempts) == ("late", 1)


def test_events_say_that_it_is_a_hedge() -> None:
    events: list[Any] = []

    async def main() -> Any:
        await hedging().bind(on_event=events.append).call(Slow({2: "fast"}))

    run(main)
    assert [(e["event"], e["attempt"], e["reason"]) for e in events] == [
        ("attempt_started", 1, None),
        ("attempt_started", 2, "hedge"),
        ("succeeded", 2, None),
    ]


def test_on_a_virtual_clock_its_hands_decide(clock: testing.VirtualClock) -> None:
    async def main() -> Any:
        slow = Slow({2: "fast"})
        task = asyncio.ensure_future(hedging(after=60).call(slow))
        await slow.attempts(1)
        clock.advance(60)
        assert await task == "fast"

    run(main)
    assert clock.sleeps == []


def test_beside_side_effects_it_is_refused() -> None:
    with pytest.raises(ValueError, match="leave hedge out"):
        hedging(side_effects="unsafe")
