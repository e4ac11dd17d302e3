"""The timers of one attempt of a stream: its first item, its idleness, its silence.

They count only while the source is waited for, so that a slow consumer trips nothing. Moments are in nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

#: Later than any timer.
NEVER = 2**63


class Limits(NamedTuple):
    """What bounds an attempt of a stream, in nanoseconds."""

    mode: str
    first_item: int | None
    idle: int | None
    silence: int | None


class Due(NamedTuple):
    """The timer that runs out next."""

    moment: int
    #: What the attempt had, when it does.
    words: str


class Timers:
    """Starts when it is made; told when the source is asked and when it has answered."""

    __slots__ = ("_began", "_limits", "_now", "asked", "content", "heard", "timeout", "waited")

    def __init__(self, limits: Limits, timeout: int, now: Callable[[], int]) -> None:
        self._limits = limits
        self._now = now
        #: What the attempt itself may take, until its first item reaches the consumer.
        self.timeout = timeout
        #: When the source was last asked.
        self.asked = self._began = now()
        #: When bytes were last seen.
        self.heard = self._began
        #: How long it was waited for since the last data, beside the wait under way.
        self.waited = 0
        #: The first content has come.
        self.content = False

    @property
    def first_item(self) -> int:
        """How long the first item may take."""
        own = self._limits.first_item
        return self.timeout if own is None else min(own, self.timeout)

    @property
    def armed(self) -> bool:
        """Something has to be watched."""
        return not self.content or self._whole or self._limits.idle is not None or self._limits.silence is not None

    @property
    def due(self) -> Due:
        """The timer that runs out next, if nothing comes."""
        limits, found = self._limits, Due(NEVER, "")
        if not self.content:
            found = Due(self._began + self.first_item, f"had no first item within {_s(self.first_item)}")
        elif self._whole:
            found = Due(self._began + self.timeout, f"was not whole within {_s(self.timeout)}")
        if limits.idle is not None and self.content:
            idle = Due(self.asked - self.waited + limits.idle, f"was idle for {_s(limits.idle)}")
            found = min(found, idle)
        if limits.silence is not None:
            silence = Due(max(self.asked, self.heard) + limits.silence, f"was silent for {_s(limits.silence)}")
            found = min(found, silence)
        return found

    @property
    def overdue(self) -> str | None:
        """What the attempt had, where a timer has run out while its source was waited for."""
        due = self.due
        return due.words if due.moment <= self._now() else None

    def ask(self) -> None:
        """The source is asked for an item."""
        self.asked = self._now()

    def ping(self) -> None:
        """It has answered something that is no data: the wait for data goes on."""
        self.heard = self._now()
        self.waited += self.heard - self.asked
        self.asked = self.heard

    def data(self) -> None:
        """It has answered data after pings."""
        self.waited = 0

    def hear(self) -> None:
        """Bytes have come."""
        self.heard = self._now()

    @property
    def _whole(self) -> bool:
        """The first item reaches the consumer when the answer is whole."""
        return self._limits.mode == "buffered"


def _s(ns: int) -> str:
    return f"{ns / 1e9:.3g} s"
