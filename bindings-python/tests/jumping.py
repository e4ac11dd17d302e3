"""Coroutines in virtual time: when nothing else is to be done, the hands jump to the next timer. Waits take no time,
and how busy the machine is changes nothing of the order in which timers run out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any

import trio
import trio.testing

from reprieve import _clock, _native, testing


class Jumping(asyncio.SelectorEventLoop):
    """A loop on the clock of the calls."""

    def __init__(self, clock: testing.VirtualClock) -> None:
        super().__init__()
        self._hands = clock

    def time(self) -> float:
        return self._hands.now() / 1e9

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self._hands.advance(max(0.0, self._scheduled[0].when() - self.time()))
        super()._run_once()


class Trios(testing.VirtualClock):
    """The clock of the calls, which shows what trio's does."""

    def __init__(self, mock: trio.testing.MockClock) -> None:
        super().__init__()
        self._mock = mock

    def now(self) -> int:
        return self._now + round(self._mock.current_time() * 1e9)

    def advance(self, seconds: float) -> None:
        self._mock.jump(seconds)


def run(main: Callable[[], Coroutine[Any, Any, Any]], loop: Any = asyncio) -> Any:
    """Runs it under asyncio, or under trio."""
    if loop is trio:
        mock = trio.testing.MockClock(autojump_threshold=0)
        with _installed(Trios(mock)):
            return trio.run(main, clock=mock)
    clock = testing.VirtualClock()
    with _installed(clock):
        jumping = Jumping(clock)
        try:
            return jumping.run_until_complete(main())
        finally:
            jumping.run_until_complete(jumping.shutdown_asyncgens())
            jumping.close()


@contextmanager
def _installed(clock: testing.VirtualClock) -> Generator[None, None, None]:
    """The timers of streams and first attempts ask the native clock, because the loops' own go by real time."""
    native, before = _native.now, _clock.install(clock)
    _native.now = clock.now
    try:
        yield
    finally:
        _native.now = native
        _clock.install(before)
