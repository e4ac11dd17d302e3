"""What `.execute` answers: the value or the failure, and how it came to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from ._native import Failure
from ._trace import Trace
from .types import Disposition, StopReason

T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True)
class Result(Generic[T]):
    """How a call ended. Exactly one of `value` (when `ok`) and `error` is meant.

    `latency` and `resume_in` are in seconds; `usage` holds tokens, and with `cost` only what the attempts reported.
    """

    ok: bool
    value: T | None
    error: Exception | None
    failure: Failure | None
    stop_reason: StopReason | None
    resume_in: float | None
    attempts: int
    latency: float
    usage: dict[str, int]
    cost: float | None
    trace: Trace
    disposition: Disposition | None = None

    def value_or(self, default: D) -> T | D:
        """The value, or this when the call failed."""
        return cast("T", self.value) if self.ok else default

    @staticmethod
    def of(value: Any, error: Exception | None, action: Any, failure: Failure | None, trace: Trace) -> Result[Any]:
        """From the last action of a call and its records."""
        ended = trace.ended or {}
        usage = {name: ended[name] for name in ("input_tokens", "output_tokens") if ended.get(name) is not None}
        return Result(
            ok=error is None,
            value=value,
            error=error,
            failure=failure if error is not None else None,
            stop_reason=action.reason,
            resume_in=action.resume_in,
            attempts=ended.get("attempts", 0),
            latency=ended.get("elapsed_ms", 0) / 1000,
            usage=usage,
            cost=ended.get("cost"),
            trace=trace,
            disposition=action.disposition,
        )
