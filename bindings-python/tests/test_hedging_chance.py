"""Streams beside each other whose sources and consumers do what chance says: whatever comes first, each source is
closed once, one attempt's items are delivered in order, the records are whole, and no task is left."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import jumping
import pytest
from failing import NO_WAIT

from reprieve import AsyncStream, AttemptTimeout, Discard, Policy, current_attempt

STREAMS = 150
MODES = ("before_first_item", "buffered", "restart", "resume")
#: How long something takes, in seconds: nothing, a turn of the loop, longer than a hedge waits.
PAUSES = (None, 0, 0.001, 0.002, 0.004, 0.008)


class Chance:
    """One stream, and what it and its consumer do."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self.mode = self._random.choice(MODES)
        self.items: list[Any] = []
        self.opened: list[int] = []
        self.closed: Counter[int] = Counter()

    def policy(self) -> Policy:
        timers = {"idle_timeout": 0.05, "first_item_timeout": 0.01}
        return Policy(
            **NO_WAIT,
            max_attempts=self._random.choice([1, 2, 3]),
            hedge={"after": self._random.choice([0.001, 0.003]), "max": self._random.choice([1, 2])},
            attempt_timeout=self._random.choice([None, None, 0.02]),
            stream={"mode": self.mode, **{name: s for name, s in timers.items() if self._random.random() < 0.3}},
        )

    async def pause(self) -> None:
        if (seconds := self._random.choice(PAUSES)) is not None:
            await asyncio.sleep(seconds)

    async def source(self) -> AsyncIterator[tuple[int, int]]:
        attempt, task, chance = current_attempt(), asyncio.current_task(), self._random
        assert attempt is not None
        number, first = attempt.number, len(attempt.delivered)
        self.opened.append(number)
        count, fails_at = chance.randint(0, 5), chance.choice([None, None, 0, 2, 5])
        stubborn, slow_to_close = chance.random() < 0.1, chance.random() < 0.2
        try:
            await self.pause()
            for n in range(count):
                if n == fails_at:
                    raise chance.choice([ConnectionError, ValueError])(number)
                yield number, first + n
                assert asyncio.current_task() is task
                assert current_attempt() is attempt
                await self.pause()
        except asyncio.CancelledError:
            if not stubborn:
                raise
        finally:
            self.closed[number] += 1
            if slow_to_close:
                await asyncio.sleep(0.003)

    async def consume(self, stream: AsyncStream[tuple[int, int]]) -> None:
        leaves = self._random.choice([None, None, None, 2])
        async for item in stream:
            self.items.append(item)
            if len(self.items) == leaves:
                break
            await self.pause()
        await stream.aclose()

    async def play(self) -> str:
        stream = self.policy().stream(self.source)
        task = asyncio.ensure_future(self.consume(stream))
        if self._random.random() < 0.15:
            await self.pause()
            task.cancel()
        await asyncio.wait([task], timeout=60)
        assert task.done(), "it hangs"
        if task.cancelled():
            await stream.aclose()
            end = "cancelled"
        else:
            error = task.exception()
            assert isinstance(error, ConnectionError | ValueError | AttemptTimeout | None), error
            end = type(error).__name__
        self.check(stream)
        return end

    def check(self, stream: AsyncStream[Any]) -> None:
        assert self.closed == Counter(self.opened), "each is closed, once"
        trace = stream.trace
        if trace is None:  # left before it had begun
            return
        assert trace.ended is not None
        numbers = [receipt["attempt"] for receipt in trace.receipts]
        assert len(numbers) == len(set(numbers))
        assert set(self.opened) <= set(numbers)
        had: list[tuple[int, int]] = []
        for item in self.items:
            if isinstance(item, Discard):
                assert item.count == len(had)
                had = []
            else:
                had.append(item)
        assert [place for _, place in had] == list(range(len(had)))
        assert trace.delivered[: len(had)] == tuple(had)
        if self.mode != "resume":
            assert len({number for number, _ in had}) <= 1, "of one attempt"


@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_first(seed: int) -> None:
    unheard: list[Any] = []

    async def main() -> Counter[str]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
        ends = await asyncio.gather(*(Chance(f"{seed}, {n}").play() for n in range(STREAMS)))
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return Counter(ends)

    ends = jumping.run(main)
    assert not unheard
    assert {"NoneType", "cancelled", "ValueError", "ConnectionError"} <= set(ends), "every end is met"
