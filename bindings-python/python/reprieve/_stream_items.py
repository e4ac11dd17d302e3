"""What the items of a stream say. The core reads them; here is only which ones it is asked about, and how they become
JSON.

Until the first content every item is read, and what is none is held back. After it only an item that bears a sign of
trouble is read, and the last few when the stream is over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from . import _native
from ._delivered import LAST
from ._errors import StreamError
from ._json import as_json
from ._reading import dig, get, is_dict, well_formed
from ._usage import details_of, main_of

#: Types that begin an answer, of which there is one.
STARTS = frozenset({"message_start", "response.created"})
#: Types that keep a connection alive, and are no data.
PINGS = frozenset({"ping", "keepalive"})
#: Types that are worth a look amid an answer.
TELLING = STARTS | PINGS | {"error", "response.failed"}
#: The type, and the field, of an event that openai's stream manager wraps; events that it makes of that one follow it.
WRAPPER = "chunk"
#: Where an event keeps what its answer used.
ANSWERS = ((), ("message",), ("response",), ("chunk",), ("metadata",))

Sign = Callable[[Any], bool]


class Reader(NamedTuple):
    """How the items of a framework are read, which are no events of a provider's."""

    #: `held`, `content`, `end` or `content_end`, as the core says of events.
    said: Callable[[Any], str]
    #: Whether a stream of such items ends with one that says so.
    finishes: Callable[[Any], bool]


#: By the class of an item; integrations add theirs.
READERS: dict[type, Reader] = {}


class Reading:
    """One attempt's stream, as far as it has been read."""

    __slots__ = ("_opening", "_signs", "client", "content", "goes_on", "held")

    def __init__(self, *, goes_on: bool = False) -> None:
        #: It goes on from what was delivered before, so that it may lack only its end.
        self.goes_on = goes_on
        #: Held back until the first content.
        self.held: list[Any] = []
        #: It has come.
        self.content = False
        #: It is the stream of a client that is known: none of those ends without an event.
        self.client = False
        self._opening: Sequence[Any] = ()
        self._signs: dict[type, Sign | None] = {}

    def opens(self, item: Any) -> bool:
        """Takes an item before the first content: whether it is that. Raises `StreamError` for an error."""
        said = self._said(item)
        if said == "error":
            raise error_of(item)
        self.held.append(item)
        self.content = said in ("content", "content_end")
        if self.content:
            self._opening = self.held
        return self.content

    def sign_of(self, item: object) -> tuple[type, Sign | None]:
        """An item's class, and what says whether one of it, amid the answer, is worth a look; of most none is."""
        kind = type(item)
        if kind not in self._signs:
            self._signs[kind] = _sign(item, prose=bool(self._opening) and _finishes(self._opening[0]))
        return kind, self._signs[kind]

    def is_data(self, item: Any) -> bool:
        """Looks at an item amid the answer that is worth it: whether it is data, and no ping. Raises `StreamError`."""
        kind = _type(item)
        if kind in STARTS and any(_type(one) == kind for one in self._opening):
            raise StreamError("the stream started again amid its answer", code="second_start", event=item)
        if type(item) is str or _said(item) == "error":
            raise error_of(item)
        return kind not in PINGS

    def is_finished(self, items: Sequence[Any]) -> bool:
        """Whether what follows the last content says that the answer is whole. Raises `StreamError` where it says that
        it failed."""
        finished = False
        for item in reversed(items[-LAST:]):
            said = self._said(item)
            if said == "error":
                raise error_of(item)
            finished |= said in ("end", "content_end")
            if said in ("content", "content_end"):
                break
        return finished

    def end(self, items: Sequence[Any]) -> None:
        """The source has no more than these. Raises `StreamError` where that is no whole answer."""
        finished = self.is_finished(items)
        known = finished or self.client or any(map(_finishes, items[-LAST:]))
        if known and not finished:
            raise StreamError("the stream ended without its finish frame", code="eof_without_finish")
        if known and not self.content and not self.goes_on:
            raise StreamError("the answer has nothing in it", code="empty_answer")

    def usage(self, items: Sequence[Any]) -> dict[str, int]:
        """What the attempt used, as far as its items say; a later word counts."""
        found: dict[str, int] = {}
        for item in (*reversed(items[-LAST:]), *self._opening[:1]):
            if not (is_dict(item) or is_model(item)):
                continue
            for path in ANSWERS:
                answer = dig(item, path)
                found = {**details_of(answer), **found} if answer is not None else found
            if len(main_of(found) or ()) > 1:
                break
        return found

    def _said(self, item: Any) -> str:
        """What the core says of an item; what a manager makes of the event before says nothing more."""
        opening = self._opening or self.held
        wrapped = bool(opening) and _type(opening[0]) == WRAPPER
        return "held" if wrapped and _type(item) != WRAPPER else _said(item)


def error_of(event: Any) -> StreamError:
    """The exception that an error event stands for."""
    error = next((found for path in (("error",), ("response", "error")) if (found := dig(event, path))), event)
    said = error if isinstance(error, str) else _field(error, "message")
    words = said if isinstance(said, str) else "the stream says that its answer failed"
    return StreamError(f"an error amid the stream: {words}", event=event)


def json_of(item: Any) -> str | None:
    """A provider's event as JSON; `None` for what is none."""
    item = get(item, WRAPPER) if _type(item) == WRAPPER else item
    try:
        if is_dict(item):
            return as_json(item)
        return well_formed(item.model_dump_json(warnings=False)) if is_model(item) else None
    except Exception:
        return None


def body_of(event: Any) -> Any:
    """An event as the body of an answer, for the core to classify."""
    return event if isinstance(event, str) else json.loads(json_of(event) or "null")


def _said(item: Any) -> str:
    """What the core says of an item. Text and bytes are content, but where they are empty, and nothing is none."""
    if item is None or (isinstance(item, (str, bytes)) and not item):
        return "held"
    reader = _reader(item)
    if reader is not None:
        return reader.said(item)
    event = json_of(item)
    return "content" if event is None else _native.stream_item(event)


def _finishes(item: Any) -> bool:
    """Whether a stream of such items ends with one that says so."""
    reader = _reader(item)
    if reader is not None:
        return reader.finishes(item)
    event = json_of(item)
    return event is not None and _native.stream_finishes(event)


def is_model(item: object) -> bool:
    """Whether it is a model of pydantic's, as the clients' events are."""
    return callable(get(type(item), "model_dump_json"))


def _reader(item: object) -> Reader | None:
    return READERS.get(type(item))


def _type(item: Any) -> str | None:
    """The word that an event calls itself, where it does."""
    kind = _field(item, "type")
    return kind if isinstance(kind, str) else None


def _field(item: Any, name: str) -> object:
    return cast("dict[str, object]", item).get(name) if is_dict(item) else get(item, name)


# --- signs: asked for every item, so that they must cost next to nothing ----------------------------------------------


def _sign(item: Any, *, prose: bool) -> Sign | None:
    """`prose`: the stream's events are a provider's, so that text among them is a gateway's own words."""
    if is_dict(item):
        return _dict_tells
    if type(item) is str:
        return _prose_tells if prose else None
    return _event_tells if _type(item) is not None else None


def _dict_tells(item: dict[str, Any]) -> bool:
    try:
        return item.get("error") is not None or item.get("type") in TELLING
    except TypeError:  # a type that cannot be looked up is no word
        return False


def _event_tells(item: Any) -> bool:
    try:
        return item.type in TELLING
    except (TypeError, AttributeError):
        return False


def _prose_tells(item: str) -> bool:
    return item.strip() != "[DONE]"
