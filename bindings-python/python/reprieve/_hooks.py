"""Functions of the user's own that a call asks on its way: `classify`, `retry_if`, `backoff`, a sink, a listener.

What they say goes to the core. A fault of theirs is counted, and says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _faults, _native
from ._evidence import evidence_of
from ._guards import nanoseconds
from ._json import as_json

if TYPE_CHECKING:
    from ._native import Failure
    from ._options import Caller


def asked(role: str, function: Callable[..., Any], *args: Any) -> Any:
    """What a user's own function says; a fault of its own is counted, and says nothing."""
    try:
        return function(*args)
    except Exception as fault:
        _faults.note(role, function, fault)
        return None


def reclassified(classify: Callable[[Exception], Any], error: Exception, failure: Failure) -> Failure:
    def apply(error: Exception) -> Failure:
        said = classify(error)
        if said is None:
            return failure
        found = json.loads(failure.to_json())
        if isinstance(said, _native.Failure):
            fields = json.loads(said.to_json())
            # That another call has retried already is a fact of the error, whatever it is taken for.
            fields["inner_trace"] = fields["inner_trace"] or found["inner_trace"]
        else:
            fields = {**found, "kind": said, "category": None, "decided_by": "classify"}
        return _native.Failure.from_json(as_json(fields))

    apply.__qualname__ = getattr(classify, "__qualname__", "classify")
    answer: Failure | None = asked("classify", apply, error)
    return answer or failure


def wait_of(backoff: Callable[[Failure, int], Any]) -> Callable[[Failure, int], int | None]:
    def apply(failure: Failure, n: int) -> int | None:
        wait = backoff(failure, n)
        return None if wait is None else nanoseconds("backoff", wait)

    apply.__qualname__ = getattr(backoff, "__qualname__", "backoff")
    return apply


def truth_of(retry_if: Callable[[Exception, Failure], Any]) -> Callable[[Exception, Failure], bool | None]:
    def apply(error: Exception, failure: Failure) -> bool | None:
        answer = retry_if(error, failure)
        return None if answer is None else bool(answer)

    apply.__qualname__ = getattr(retry_if, "__qualname__", "retry_if")
    return apply


def writer_of(sink: Any) -> Callable[[str], Any]:
    if callable(sink):
        return sink  # type: ignore[no-any-return]

    def write(line: str) -> None:
        sink.write(line + "\n")

    write.__qualname__ = str(getattr(sink, "name", type(sink).__qualname__))
    return write


def classified(error: Exception, owner: Caller) -> Failure:
    """What a call of this owner would take the error for."""
    failure = _native.classify(as_json(evidence_of(error)), owner._native)
    classify = owner._options.classify
    return failure if classify is None or failure.category == "control" else reclassified(classify, error, failure)
