"""What reprieve itself raises.

A call that gives up re-raises the user's own exception; these are for where there is none, and for bad input.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Failure
    from ._trace import Trace


class ConfigError(ValueError):
    """A policy, option or value that is not allowed. Names the field, the value and what is allowed."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(field, value, allowed)
        self.field, self.value, self.allowed = field, value, allowed

    def __str__(self) -> str:
        return f"{self.field}: {self.value} is not allowed; it takes {self.allowed}"


class SnapshotError(ValueError):
    """A snapshot that is damaged or from another version. Nothing was resumed."""


class MisuseError(RuntimeError):
    """The raw machine was called in a way that its state does not allow. Nothing has changed."""


class RetryError(Exception):
    """A call ended, and there is no exception of the user's own to raise.

    `stop_reason` says why; `attempts` counts all attempts and `retries` those after the first; `failure` is the last
    classified failure; `resume_in` is when it may work, in seconds; `trace` has the receipts.
    """

    def __init__(
        self,
        message: str = "",
        *,
        stop_reason: str = "",
        attempts: int = 0,
        failure: Failure | None = None,
        resume_in: float | None = None,
        trace: Trace | None = None,
    ) -> None:
        super().__init__(message)
        self.stop_reason = stop_reason
        self.attempts = attempts
        self.retries = max(0, attempts - 1)
        self.failure = failure
        self.resume_in = resume_in
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        """Crosses processes without its failure and trace, which belong to where the call ran."""
        kept = {name: getattr(self, name) for name in ("stop_reason", "attempts", "retries", "resume_in")}
        return type(self), self.args, kept


class RetryExhausted(RetryError):
    """All attempts failed, where `on_give_up="wrapped"` asks for it; raised from the last exception."""


class DeadlineExceeded(RetryError):
    """The time was up before an attempt could start."""


class CircuitOpen(RetryError):
    """The circuit breaker refused before an attempt could start."""


class CoolingDown(RetryError):
    """The target is cooling down or benched, and nothing else was left."""


class Limited(RetryError):
    """A limit was reached before an attempt could start."""


class Shed(RetryError):
    """Load is being shed: the call never started."""


class BudgetExhausted(RetryError):
    """The run's budget was used up before an attempt could start."""


class CallCancelled(RetryError):
    """The call's cancel event was set, its handle or its run was cancelled."""


class BadOutput(RetryError):
    """`check` refused what the function answered, which is here as `value`; `failure` says what it was taken for. A
    `check` that raises is heard in its own words instead."""

    def __init__(self, message: str = "", *, value: Any = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        """Crosses processes with its value, where that can be pickled."""
        import pickle

        kind, args, kept = super().__reduce__()
        with contextlib.suppress(Exception):
            pickle.dumps(self.value)
            kept = {**kept, "value": self.value}
        return kind, args, kept


class AttemptTimeout(RetryError, TimeoutError):
    """A coroutine's attempt took longer than its timeout and was cancelled, or a timer of a stream ran out."""


class StreamError(RetryError):
    """A stream failed, and nobody raised an exception of their own: an error event under a status that said success,
    an answer that was filtered or has nothing in it, an end without a finish frame.

    `event` is the event that said so, where there is one; `code` is `eof_without_finish`, `second_start` or
    `empty_answer`, where there is none. `trace_of(error).delivered` has the items that were delivered before.
    """

    def __init__(self, message: str = "", *, code: str | None = None, event: object = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.code = code
        self.event = event


#: What a stop without an exception of the user's own raises.
BY_REASON: dict[str, type[RetryError]] = {
    "deadline_exceeded": DeadlineExceeded,
    "circuit_open": CircuitOpen,
    "cooling_down": CoolingDown,
    "limited": Limited,
    "shed": Shed,
    "run_budget_exhausted": BudgetExhausted,
    "cancelled": CallCancelled,
}
