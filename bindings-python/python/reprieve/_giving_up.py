"""How a call that failed ends for people: the exception that is raised, with its trace and a note that says why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _errors, _native
from ._errors import AttemptTimeout, BadOutput, RetryError, RetryExhausted, StreamError
from ._trace import Trace, attach

if TYPE_CHECKING:
    from ._native import Action, Failure
    from ._session import Session


def exception_of(session: Session, action: Action) -> Exception:
    """The exception that a call ends with: the user's own, where there is one."""
    trace, failure, reason, error = session.trace(), session.call.failure, action.reason or "", session.error
    note = _note(session, action, trace, failure)
    details: dict[str, Any] = {
        "stop_reason": reason,
        "attempts": session.call.attempts,
        "failure": failure,
        "resume_in": action.resume_in,
        "trace": trace,
    }
    cancelled = session.cancel_reason if reason == "cancelled" else None
    if error is None or cancelled is not None:
        message = cancelled or _native.says(reason)
        stopped = _errors.BY_REASON.get(reason, RetryError)(f"{message}; {note}", **details)
        stopped.__cause__ = error
        attach(stopped, trace)
        return stopped
    if isinstance(error, (AttemptTimeout, BadOutput, StreamError)):
        vars(error).update(details, retries=max(0, session.call.attempts - 1))
    attach(error, trace)
    _add_note(error, note)
    if session.options.on_give_up == "wrapped":
        wrapped = RetryExhausted(note, **details)
        wrapped.__cause__ = error
        attach(wrapped, trace)
        return wrapped
    return error


def _note(session: Session, action: Action, trace: Trace, failure: Failure | None) -> str:
    elapsed = (trace.ended or {}).get("elapsed_ms", 0) / 1000
    count, reason = session.call.attempts, action.reason or ""
    words = f"{count} attempt{'' if count == 1 else 's'} in {elapsed:.3g} s"
    why = _native.says(reason) if session.broken_by is None else f"{session.broken_by} raised this"
    note = f"reprieve: gave up after {words}: {why} ({reason}); trace {trace.trace_id}"
    if failure is not None:
        note += f"; last failure {failure.kind}"
        if failure.kind == "unknown" and reason == "not_retryable":
            note += '; to retry it, add "unknown" to retry_on, or a rule or classify that says what it is'
    if action.resume_in is not None:
        note += f"; may work in {action.resume_in:.3g} s"
    if action.disposition == "human":
        note += "; needs a person"
    return note + session.advice(reason)


def _add_note(error: BaseException, note: str) -> None:
    """PEP 678's note; on Python 3.10, where tracebacks do not show them, for whoever looks. An exception that was
    raised before keeps only the latest note. Written as `attach` writes: a frozen class has no say in it."""
    try:
        notes = [n for n in error.__dict__.get("__notes__", ()) if not str(n).startswith("reprieve: ")]
        error.__dict__["__notes__"] = [*notes, note]
    except Exception:
        return
