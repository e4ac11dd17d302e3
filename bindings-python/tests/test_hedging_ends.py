"""Attempts beside each other: a cancellation reaches all of them, and nothing of the losers is left."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from typing import Any

import pytest
from hedged import SOON, Slow, hedging, run, run_bare

from reprieve import CallCancelled, Run

pytestmark = [pytest.mark.filterwarnings("error")]


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
