"""The attempt that is under way, for the function that it runs.

The happy path of plain functions keeps its attempts on a native stack per thread; every other attempt is a context
variable. Which of the two is asked does not show.
"""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from . import _native
from ._clock import clock

if TYPE_CHECKING:
    from ._guards import Run
    from ._options import Caller


class Ids:
    """What names a call, and its seed. Drawn once, when somebody first needs them."""

    __slots__ = ("idempotency_key", "seed", "trace_id")

    def __init__(self, trace_id: str, idempotency_key: str, seed: int) -> None:
        self.trace_id, self.idempotency_key, self.seed = trace_id, idempotency_key, seed

    @staticmethod
    def draw() -> Ids:
        """From the operating system's entropy; the trace id of the current span, where OpenTelemetry has one."""
        entropy = os.urandom(40)
        trace_id = _span_trace_id() or entropy[:16].hex()
        return Ids(trace_id, entropy[16:32].hex(), int.from_bytes(entropy[32:], "big"))


def _span_trace_id() -> str | None:
    """The current span's trace id, if OpenTelemetry is in use; it is never imported from here."""
    otel: Any = sys.modules.get("opentelemetry.trace")
    if otel is None:
        return None
    try:
        context = otel.get_current_span().get_span_context()
        return f"{context.trace_id:032x}" if context.is_valid else None
    except Exception:
        return None


class Attempt:
    """One attempt, as `current_attempt()` shows it to the function that makes it."""

    __slots__ = ("_ids", "connect_timeout", "ended", "ends_by", "is_last", "number", "run", "target", "timeout")

    def __init__(
        self,
        number: int,
        target: str,
        timeout_ns: int,
        ends_by: int,
        is_last: bool,
        ids: Ids | None,
        connect_timeout: float | None = None,
        run: Run | None = None,
    ) -> None:
        #: Its number over the whole call, from 1.
        self.number = number
        #: The id of the target it is aimed at.
        self.target = target
        #: How long it may take, in seconds: hand it on to the client.
        self.timeout = timeout_ns / 1e9
        #: How long a connection may take to open, in seconds; never more than `timeout`.
        self.connect_timeout = self.timeout if connect_timeout is None else min(connect_timeout, self.timeout)
        #: No attempt can follow it.
        self.is_last = is_last
        #: When it must end, in nanoseconds on the driver's clock.
        self.ends_by = ends_by
        #: The run it belongs to.
        self.run = run
        #: It is over: what still runs of it is no part of it.
        self.ended = False
        self._ids = ids

    @property
    def ids(self) -> Ids:
        """What names the call."""
        if self._ids is None:
            self._ids = Ids.draw()
        return self._ids

    @property
    def drawn(self) -> Ids | None:
        """The same, if somebody has asked."""
        return self._ids

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits."""
        return self.ids.trace_id

    @property
    def idempotency_key(self) -> str:
        """One key for the whole call, for a server that recognises a repeated request."""
        return self.ids.idempotency_key

    @property
    def time_left(self) -> float:
        """What is left of its timeout, in seconds."""
        return max(0, self.ends_by - clock().now()) / 1e9

    def __repr__(self) -> str:
        return f"<Attempt {self.number} of {self.target}, {self.time_left:.3g} s left>"


CURRENT: ContextVar[Attempt | None] = ContextVar("reprieve_attempt", default=None)


def current_attempt() -> Attempt | None:
    """The attempt under way here, or `None` outside of one.

    Hand its `timeout` to clients that cannot be interrupted, and its `idempotency_key` to servers that know one.

    >>> from reprieve import Policy, current_attempt
    >>> @Policy(attempt_timeout=5)
    ... def ask() -> float:
    ...     return current_attempt().timeout
    >>> ask()
    5.0
    """
    attempt = CURRENT.get()
    if attempt is not None and not attempt.ended:
        return attempt
    frame = _native.current_frame(Ids.draw)
    if frame is None:
        return None
    owner, began, ends_by, ids = frame
    return _of_frame(owner, began, ends_by, ids)


def _of_frame(owner: Caller, began: int, ends_by: int, ids: Ids) -> Attempt:
    policy = owner._native
    is_last = policy.max_attempts_of_first == 1 and len(policy.targets) == 1
    return Attempt(1, policy.targets[0], ends_by - began, ends_by, is_last, ids, policy.connect_timeout)
