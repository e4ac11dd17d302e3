"""A body that is a stream of a model's events: what holds no content yet is held back, and what fails until then can be
asked for again. The core says what an event is; here bytes become events."""

from __future__ import annotations

import codecs
import json
import re

from .. import _native
from .._errors import StreamError
from .._stream_items import error_of

#: More than this is no beginning any more.
LONGEST = 64 * 1024
BLANK_LINE = re.compile(r"\r?\n\r?\n")
BEGINNING = re.compile(r"data|event|id|retry|:")


class Events:
    """Reads the events of one body."""

    def __init__(self, *, subscribed: bool) -> None:
        """`subscribed`: events may be long in coming, and a comment says that they will."""
        self._subscribed = subscribed
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest, self._size = "", 0
        self._known = self._finished = False
        #: There is something in it that a consumer can use; what nobody knows is.
        self.content = False
        #: What is wrong with it.
        self.fault: StreamError | None = None

    def read(self, chunk: bytes) -> bool:
        """Takes bytes; whether enough is known of the body."""
        text = self._decoder.decode(chunk)
        self._size += len(text)
        *frames, self._rest = BLANK_LINE.split(self._rest + text)
        for frame in frames:
            if self.fault is None:
                self._frame(frame)
        begins = len(self._rest) < 5 or BEGINNING.match(self._rest)
        self.content = self.content or not begins or self._size > LONGEST
        return self.content or self.fault is not None

    def end(self) -> None:
        """The body ends here."""
        if self.fault is None and not (self._finished if self._known else self.content):
            self.fault = StreamError("the stream ended without its finish frame", code="eof_without_finish")
        elif self.fault is None and not self.content:
            self.fault = StreamError("the answer has nothing in it", code="empty_answer")

    def _frame(self, frame: str) -> None:
        data = "\n".join(line[5:].strip() for line in frame.splitlines() if line.startswith("data:"))
        if not data and not self._subscribed:
            return
        said, known = _native.stream_item(data), _native.stream_finishes(data)
        self._known |= known
        self._finished |= said in ("end", "content_end")
        if said == "error":
            self.fault = error_of(_parsed(data))
        elif said.startswith("content") or not (known or said == "end"):  # the word that ends a stream is no event
            self.content = True


def _parsed(data: str) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return data
