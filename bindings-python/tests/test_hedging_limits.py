"""Attempts beside each other: budgets, runs, requests that are prepared and checked, and where nothing is joined."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from hedged import SOON, Slow, hedging, run

from reprieve import Run, current_attempt, testing

pytestmark = [pytest.mark.filterwarnings("error")]


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
