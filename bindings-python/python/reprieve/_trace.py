"""A call's trace: its receipts and how it ended, attached to the exception that it raises, or to the response that it
answers with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from . import _native
from ._evidence import chain_of
from ._reading import get, is_dict, is_exception

_ATTRIBUTE = "__reprieve_trace__"


class Trace:
    """The records of one call, masked.

    `lines` are the JSON lines as a sink gets them; `receipts` and `ended` are the same as dicts; `str()` is a
    timeline for people.
    """

    def __init__(self, trace_id: str, lines: list[str], delivered: Iterable[Any] = ()) -> None:
        self.trace_id = trace_id
        self.lines = lines
        self._delivered = delivered
        #: When these records were made, or came from another process: real time, also under a virtual clock.
        self.made_at = _native.now()

    def __reduce__(self) -> tuple[Any, ...]:
        return Trace, (self.trace_id, self.lines)

    @cached_property
    def delivered(self) -> Sequence[Any]:
        """Of a stream: the items that its consumer has had, since the last `Discard` where there was one. Those of a
        wrapped client are made again from what the server sent when this is first read."""
        return tuple(self._delivered)

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    @property
    def receipts(self) -> list[dict[str, Any]]:
        """One for each attempt and refusal, oldest first."""
        return [record for record in self._records if "record" not in record]

    @property
    def ended(self) -> dict[str, Any] | None:
        """The `call_ended` record."""
        return next((record for record in self._records if record.get("record") == "call_ended"), None)

    def __repr__(self) -> str:
        return f"<Trace {self.trace_id} of {len(self.receipts)} receipts>"

    def __str__(self) -> str:
        """A line for each receipt, with its span of time drawn to scale."""
        return _native.timeline(self.trace_id, self.lines)


def attach(end: object, trace: Trace) -> None:
    """Attaches a trace to an exception or an answer, whatever its class does with attributes."""
    try:
        end.__dict__[_ATTRIBUTE] = trace
    except Exception:
        return


def attached(end: object) -> Trace | None:
    """The trace on this very exception or response, or on the response that this exception was made of."""
    for holder in (end, get(end, "response")):
        own = get(holder, "__dict__")
        found = own.get(_ATTRIBUTE) if is_dict(own) else None
        if isinstance(found, Trace):
            return found
    return None


def trace_of(end: object) -> Trace | None:
    """The trace of the call that raised this exception, looked for along its causes and in its groups; or of the call
    of a wrapped client or an HTTP layer that gave this answer; or what a stream's call has recorded so far.

    >>> from reprieve import Policy, trace_of
    >>> def fails():
    ...     raise ValueError("no")
    >>> try:
    ...     Policy().call(fails)
    ... except ValueError as error:
    ...     print(trace_of(error).receipts[0]["decision"])
    stop
    """
    links = chain_of(end) if is_exception(end) else (end,)
    found = next((trace for link in links if (trace := attached(link))), None)
    own = get(end, "trace") if found is None else None  # a stream's, or a result's
    return own if isinstance(own, Trace) else found
