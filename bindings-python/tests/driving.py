"""The drivers that a call of a case goes through, and the forms in which it starts."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import trio

from reprieve import Bound, _aio, _driver
from reprieve._starting import Started

if TYPE_CHECKING:
    from driven import Lane


class Mode:
    """A driver, and the form in which a call starts."""

    coroutine = False
    #: The driver makes the first attempt by itself, and the machine is started when it fails.
    late = False
    name = ""

    def drive(self, lane: Lane, bound: Bound) -> Any:
        raise NotImplementedError

    async def forever(self) -> None:
        raise NotImplementedError


class Plain(Mode):
    name = "through plain functions"

    def drive(self, lane: Lane, bound: Bound) -> Any:
        if not lane.by_handle:
            return bound.execute(lane.function)
        return lane.handled(bound.start(lane.function)).result()


class PlainLate(Mode):
    name = "through plain functions, started late"
    late = True

    def drive(self, lane: Lane, bound: Bound) -> Any:
        began = begin_late(lane, bound)
        try:
            value = lane.function()
        except Exception as error:
            return _driver.run(bound, lane.function, (), {}, (began, error, None))
        return done_late(lane, value)


class Coroutines(Mode):
    coroutine = True

    async def main(self, lane: Lane, bound: Bound) -> Any:
        if lane.by_handle:
            return await lane.handled(bound.start(lane.coroutine))
        return await (bound.execute if lane.recorded else bound.call)(lane.coroutine)


class Asyncio(Coroutines):
    name = "through asyncio"

    def drive(self, lane: Lane, bound: Bound) -> Any:
        return asyncio.run(self.main(lane, bound))

    async def forever(self) -> None:
        await asyncio.Event().wait()


class AsyncioLate(Asyncio):
    name = "through asyncio, started late"
    late = True

    async def main(self, lane: Lane, bound: Bound) -> Any:
        began = begin_late(lane, bound)
        try:
            value = await lane.coroutine()
        except Exception as error:
            return await _aio.run(bound, lane.coroutine, (), {}, Started(began, error, None))
        return done_late(lane, value)


class Trio(Coroutines):
    name = "through trio"

    def drive(self, lane: Lane, bound: Bound) -> Any:
        return trio.run(self.main, lane, bound)

    async def forever(self) -> None:
        await trio.sleep_forever()


def begin_late(lane: Lane, bound: Bound) -> int:
    """What the happy path does before its first attempt: it takes the values that the core computed for the policy."""
    native = bound._native
    blank = dict.fromkeys(("hedge_after_ns", "after_ns", "reason", "disposition", "resume_in_ns", "discard", "resume"))
    facts = {"number": 1, "target": native.targets[0], "timeout_ns": native.first_timeout_ns}
    return lane.begun(SimpleNamespace(kind="attempt", **facts, **blank))


def done_late(lane: Lane, value: Any) -> Any:
    raise AssertionError("a first attempt that succeeds is skipped")


MODES: tuple[Mode, ...] = (Plain(), PlainLate(), Asyncio(), AsyncioLate(), Trio())
