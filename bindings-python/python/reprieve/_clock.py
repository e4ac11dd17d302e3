"""The clock that drivers ask and sleep on. `reprieve.testing` puts a virtual one in its place.

Everything is looked up when it is used: gevent and other patches of `time` work whenever they are applied.
"""

from __future__ import annotations

import time

from . import _native

#: How often what cannot call back, such as an event, is looked at: every 10 ms, in seconds.
LOOK = 0.01


class Clock:
    """Real time."""

    #: Waits really take time; a virtual clock moves its hands instead.
    virtual = False

    def now(self) -> int:
        """Monotonic nanoseconds."""
        return _native.now()

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        """Blocks this thread, or this greenlet."""
        time.sleep(seconds)

    def cap_attempts(self) -> int | None:
        """The most attempts a call may make here, whatever its policy says."""
        return None


_clock: Clock = Clock()


def clock() -> Clock:
    """The clock in force."""
    return _clock


def install(new: Clock) -> Clock:
    """Puts another clock in force, and answers the one before."""
    global _clock
    old, _clock = _clock, new
    _native.set_fast(not new.virtual)
    return old
