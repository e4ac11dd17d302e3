"""Calls through the drivers of streams, as `driven` does it for plain ones: the source says when its items come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import trio
from driven import Lane
from driving import Mode
from vectors import Differs, World

import reprieve
from reprieve import Bound, Discard, Policy

#: What the script says where the source has its first item, and goes on.
FIRST: dict[str, Any] = {"first_item": None}


class StreamLane(Lane):
    """One call through a driver of streams."""

    def __init__(self, world: World, policy: Policy, seed: int, ids: dict[str, Any], mode: Mode) -> None:
        super().__init__(world, policy, seed, ids, mode)
        self.by_handle = False
        #: What the consumer has had.
        self.items: list[Any] = []
        self._discards: list[int] = []

    # --- the script's side ---

    def first_item(self, at: int, attempt: int | None) -> Any:
        self._must_be("attempt")
        self._do = FIRST
        had = len(self.items)
        self._run()
        self._must_be("attempt")
        if len(self.items) == had and not self._buffered:
            raise Differs("the first item has not reached the consumer")
        return "pending"

    def _check_where(self, action: Any) -> None:
        super()._check_where(action)
        if action.kind in ("retry", "fallback") and action.discard is not None:
            self._discards.append(action.discard)

    def _check_end(self, action: Any) -> None:
        if [item.count for item in self.items if isinstance(item, Discard)] != self._discards:
            raise Differs(f"told to discard {self._discards}, the consumer has had {self.items}")
        if action.kind == "done":
            had = len(self.items) - max(
                [i + 1 for i, item in enumerate(self.items) if isinstance(item, Discard)] or [0]
            )
            if had != self._do["success"].get("delivered", had):
                raise Differs(f"the consumer has had {self.items}")
            return
        super()._check_end(action)

    # --- the driver's side ---

    def plain(self) -> Iterator[str]:
        """The source. What one attempt brings, is counted on from what others have brought before."""
        self._attempted()
        attempt = reprieve.current_attempt()
        assert attempt is not None
        count = len(attempt.delivered)
        while self._do is FIRST:
            yield f"item {count}"
            count += 1
            self._pause("attempt")
        for n in range(count, self._delivered()):
            yield f"item {n}"
        if self._fails_within():
            with self._another():
                Policy.preset("single").call(self._raise)
        self._outcome()

    async def coro(self) -> AsyncIterator[str]:
        for item in self.plain():
            yield item
        if self._do.get("failure", {}).get("kind") == "cancelled":
            await self._mode.forever()

    def _outcome(self) -> Any:
        cancelled = self._session is not None and self._session.cancelled()
        if self._mode.coroutine and cancelled and self._do.get("failure", {}).get("kind") == "cancelled":
            return None  # what cancels the call cuts it
        return super()._outcome()

    def _delivered(self) -> int:
        told = {**self._do, **self._do.get("success", {})}
        return int(told.get("delivered", 0))

    def _look(self) -> None:
        """The source sees the attempt that the machine started, bounded by the stream's own timer."""
        attempt, action = reprieve.current_attempt(), self._told[-1][1]
        _, first, _, _ = self._bound._native.stream
        bound = action.timeout_ns if first is None else min(first, action.timeout_ns)
        seen = attempt and (attempt.number, attempt.target, round(attempt.timeout * 1e9))
        if seen != (action.number, action.target, round(bound / 1e9 * 1e9)):
            raise Differs(f"told {action.to_json()}, current_attempt() says {seen}")

    @property
    def _buffered(self) -> bool:
        return bool(self._bound._native.stream[0] == "buffered")


class PlainStream(Mode):
    name = "through streams"

    def drive(self, lane: Any, bound: Bound) -> Any:
        for item in bound.stream(lane.plain):
            lane.items.append(item)


class AsyncioStream(Mode):
    name = "through asyncio's streams"
    coroutine = True

    async def main(self, lane: Any, bound: Bound) -> Any:
        async for item in bound.stream(lane.coro):
            lane.items.append(item)

    def drive(self, lane: Any, bound: Bound) -> Any:
        return asyncio.run(self.main(lane, bound))

    async def forever(self) -> None:
        await asyncio.Event().wait()


class TrioStream(AsyncioStream):
    name = "through trio's streams"

    def drive(self, lane: Any, bound: Bound) -> Any:
        return trio.run(self.main, lane, bound)

    async def forever(self) -> None:
        await trio.sleep_forever()


MODES: tuple[Mode, ...] = (PlainStream(), AsyncioStream(), TrioStream())
