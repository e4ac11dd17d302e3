"""For tests of code that retries: a virtual clock, no real sleeping, attempts capped.

>>> from reprieve import Policy, testing
>>> def always_times_out():
...     raise TimeoutError
>>> with testing.virtual() as clock:
...     result = Policy(backoff={"base": 60, "max": 60}, jitter={"kind": "none"}).execute(always_times_out)
>>> clock.sleeps, result.attempts
([60.0, 60.0], 3)
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from . import _clock
from ._errors import ConfigError

__all__ = ["VirtualClock", "virtual"]


class VirtualClock(_clock.Clock):
    """Time that only moves when somebody sleeps or `advance`s it."""

    virtual = True

    def __init__(self, attempts: int | None = None, start: float = 1_000.0, wall: float = 1_700_000_000.0) -> None:
        self._now = int(start * 1e9)
        self._wall = int(wall * 1e3) - self._now // 1_000_000
        self._attempts = attempts
        self._lock = threading.Lock()
        #: Every wait that was slept, in seconds.
        self.sleeps: list[float] = []

    def now(self) -> int:
        return self._now

    def wall_ms(self) -> int:
        return self._wall + self._now // 1_000_000

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.sleeps.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Lets time pass: an attempt that takes a while, a clock that goes on while nobody looks."""
        with self._lock:
            self._now += round(seconds * 1e9)

    def cap_attempts(self) -> int | None:
        return self._attempts


@contextmanager
def virtual(attempts: int | None = None) -> Generator[VirtualClock, None, None]:
    """Every call in this process runs on a virtual clock while this is open. With `attempts`, none makes more than
    that many on a target, whatever its policy says."""
    if attempts is not None and attempts < 1:
        raise ConfigError("attempts", attempts, "a whole number from 1, or None")
    clock = VirtualClock(attempts)
    before = _clock.install(clock)
    try:
        yield clock
    finally:
        _clock.install(before)
