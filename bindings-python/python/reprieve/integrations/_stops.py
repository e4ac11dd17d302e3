"""Why a call stopped, read from whatever it raised: the user's own exception, or one of ours."""

from __future__ import annotations

from typing import NamedTuple, cast

from .._errors import RetryError
from .._trace import Trace, trace_of
from ..types import StopReason


class Stop(NamedTuple):
    """The end of a call that did not succeed."""

    reason: StopReason
    #: When it may work, in seconds, where that is known.
    resume_in: float | None
    trace: Trace | None


def stop_of(error: BaseException) -> Stop | None:
    """How the call that raised this ended; `None` for what no call has raised."""
    trace = trace_of(error)
    ended = trace.ended if trace is not None else None
    if ended is not None and ended["reason"] is not None:
        resume_in = ended["resume_in_ms"]
        return Stop(ended["reason"], None if resume_in is None else resume_in / 1000, trace)
    if isinstance(error, RetryError) and error.stop_reason:  # from another process, where its trace stays behind
        return Stop(cast("StopReason", error.stop_reason), error.resume_in, trace)
    return None
