"""What a step makes of the function of a call: the value it answers or the exception it raises, and what the bound
functions say of that."""

from __future__ import annotations

import errno
import json
from typing import Any, cast

from reprieve import Failure


class Scripted(Exception):
    """What the function raises: carries the step, which the bound functions look up."""

    def __init__(self, do: dict[str, Any]) -> None:
        super().__init__(do.get("failure", do.get("evidence", {})).get("message", ""))
        self.do = do


def classify(error: Exception) -> Failure | None:
    """The step's own failure; nothing for evidence, which is the core's to classify. The trace of an inner call is a
    fact, which the driver has to find by itself."""
    assert isinstance(error, Scripted)
    failure = {k: v for k, v in error.do.get("failure", {}).items() if k != "inner_trace"}
    return Failure.from_json(json.dumps(failure)) if failure else None


def retry_if(error: Exception, failure: Failure) -> Any:
    """The step's word, or nothing."""
    assert isinstance(error, Scripted)
    return error.do.get("retry_if")


def value_of(do: dict[str, Any]) -> Any:
    """A value that reports its usage as clients' answers do."""
    return {"usage": do["success"].get("usage", {})}


#: Where clients keep what is evidence.
KEPT = {
    "status": "status_code",
    "headers": "headers",
    "body": "body",
    "provider_code": "code",
    "provider_type": "type",
}


def raised_for(do: dict[str, Any]) -> Scripted:
    """An exception in which the evidence is where clients keep it."""
    evidence = do.get("evidence", {})
    kind = type("Scripted", (Scripted,), {"__module__": "scripted"})
    for name in reversed(evidence.get("error_types", [])):
        module, _, word = name.rpartition(".")
        kind = type(word, (kind,), {"__module__": module or "builtins"})
    error = cast("Scripted", kind(do))
    vars(error).update({place: evidence[fact] for fact, place in KEPT.items() if fact in evidence})
    if "os_code" in evidence:
        error.__cause__ = OSError(getattr(errno, evidence["os_code"], errno.EIO), "")
    return error
