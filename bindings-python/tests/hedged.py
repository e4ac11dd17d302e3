"""Attempts beside each other: functions and sources that end as they are told, and a loop that nothing is left in.

In virtual time: what joins an attempt, and what ends before that, is a matter of timers alone.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import jumping
from failing import NO_WAIT

from reprieve import Policy, current_attempt, trace_of

#: When another attempt joins, in seconds.
SOON = 0.005
USER = contextvars.ContextVar("USER", default="nobody")


def hedging(after: float = SOON, most: int = 1, **fields: Any) -> Policy:
    """A policy whose attempts are joined soon."""
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
    """What the records say of each attempt."""
    trace = getattr(error_or_result, "trace", None) or trace_of(error_or_result)
    return [(r["attempt"], r["outcome"], r["decision"]) for r in trace.receipts]


def run_bare(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Runs it in real time, and holds nothing of it."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


#: What an attempt does until it is cancelled.
FOREVER = object()


class Source:
    """Streams that bring what their attempt's list says: words, exceptions to raise, events to wait for."""

    def __init__(self, scripts: dict[int, list[Any]]) -> None:
        self.scripts = scripts
        self.started: list[int] = []
        self.left: dict[int, str] = {}
        self.again = asyncio.Event()

    async def __call__(self) -> AsyncIterator[str]:
        attempt = current_attempt()
        assert attempt is not None
        number, task = attempt.number, asyncio.current_task()
        self.started.append(number)
        self.again.set()
        try:
            for step in self.scripts.get(number, [FOREVER]):
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, str):
                    yield step
                    assert current_attempt() is attempt, "each attempt sees itself"
                    assert asyncio.current_task() is task, "a source stays in its task"
                else:
                    await (step.wait() if step is not FOREVER else asyncio.Event().wait())
            self.left[number] = "ended"
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # unwinding takes its time
            self.left[number] = "cancelled"
            raise
        except GeneratorExit:
            self.left[number] = "closed"
            raise
        finally:
            self.left.setdefault(number, "raised")

    async def attempts(self, count: int) -> None:
        """Waits until so many have started."""
        while len(self.started) < count:
            self.again.clear()
            await self.again.wait()


async def first_hangs() -> None:
    """The first attempt waits here until it is cancelled; others go on."""
    attempt = current_attempt()
    assert attempt is not None
    if attempt.number == 1:
        await asyncio.Event().wait()


async def taken(stream: Any, items: list[Any] | None = None) -> list[Any]:
    """The items of a stream, also in a list that is there when it raises."""
    found = [] if items is None else items
    async for item in stream:
        found.append(item)
    return found
