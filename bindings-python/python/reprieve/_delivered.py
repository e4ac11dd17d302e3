"""The items that attempts of a stream have brought.

Where a client can make an item again from its text, the text is kept in its place: objects that live on are gone over
by Python's garbage collector again and again, which costs more than everything else that is done with a chunk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

#: So many of the last items are at hand: they tell how an answer ended.
LAST = 8


class Recorder(Protocol):
    """Knows what the items of a client's stream were made of."""

    #: What the item was made of that has come last.
    text: str
    #: Set once items are kept as text.
    noting: bool
    #: From then on the items themselves say nothing: also the last ones have to be made again.
    mute: bool

    def make(self, text: str, /) -> Any:
        """Makes an item again."""


class Items:
    """Items in their order, each kept as it came or as its text."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []

    def __len__(self) -> int:
        return sum(len(part.kept) for part in self._parts)

    def __iter__(self) -> Iterator[Any]:
        for part in self._parts:
            yield from part.kept if part.make is None else map(part.make, part.kept)

    def __iadd__(self, items: Iterable[Any]) -> Items:
        self._objects.extend(items)
        return self

    def append(self, item: Any) -> None:
        """Keeps an item as it is."""
        self._objects.append(item)

    def keeping(self, recorder: Recorder | None) -> Callable[[Any], None]:
        """What keeps each item that comes from now on, as text where there is a recorder."""
        if recorder is None:
            return self._objects.append
        recorder.noting = True
        part = _Part(recorder.make, mute=recorder.mute)
        self._parts.append(part)
        keep, recent = part.kept.append, part.recent.append

        def note_text(_item: Any) -> None:
            keep(recorder.text)

        def note(item: Any) -> None:
            keep(recorder.text)
            recent(item)

        return note_text if recorder.mute else note

    def last(self, most: int) -> list[Any]:
        """The last items, at most so many and no more than `LAST`."""
        found: list[Any] = []
        for part in reversed(self._parts):
            found[:0] = part.last()
            if len(found) >= most:
                break
        return found[max(len(found) - min(most, LAST), 0) :]

    def clear(self) -> None:
        """Forgets them. Copies keep what they have."""
        self._parts = []

    def copy(self) -> Items:
        """What is there now. Items that are kept as texts are made again when the copy is iterated."""
        made = Items()
        made._parts = [part.copy() for part in self._parts]
        return made

    @property
    def _objects(self) -> list[Any]:
        if not self._parts or self._parts[-1].make is not None:
            self._parts.append(_Part(None, mute=False))
        return self._parts[-1].kept


class _Part:
    """Items that are all kept in one way."""

    __slots__ = ("kept", "make", "mute", "recent")

    def __init__(self, make: Callable[[str], Any] | None, *, mute: bool) -> None:
        #: Makes them again from what is kept; `None` where they are kept themselves.
        self.make = make
        self.kept: list[Any] = []
        self.mute = mute
        #: Of those that are kept as texts the last ones.
        self.recent: deque[Any] = deque(maxlen=LAST)

    def last(self) -> Iterable[Any]:
        if self.make is None:
            return self.kept[-LAST:]
        return [self.make(text) for text in self.kept[-LAST:]] if self.mute else self.recent

    def copy(self) -> _Part:
        made = _Part(self.make, mute=self.mute)
        made.kept, made.recent = self.kept.copy(), self.recent.copy()
        return made
