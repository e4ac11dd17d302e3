"""The attempt that is under way, for the function that it runs.

The happy path of plain functions keeps its attempts on a native stack per thread; every other attempt is a context
variable. Which of the two is asked does not show.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Facts(NamedTuple):
    """What is known of an attempt before it begins. For a first attempt it is the same in every call."""

    number: int
    target: str
    timeout_ns: int
    is_last: bool
    connect_timeout: float | None
    run: Run | None = None

    @staticmethod
    def of_first(owner: Caller) -> Facts:
        """Of the first attempt for this caller."""
        policy = owner._native
        is_last = policy.ends_with(1) and not owner._options.repair
        return Facts(1, policy.targets[0], policy.first_timeout_ns, is_last, policy.connect_timeout)


NO_ANSWER: Any = object()


class Attempt:
    """One attempt, as `current_attempt()` shows it to the function that makes it."""

    # Defaults stand in the class: what does not happen on the happy path costs nothing there.
    _ids: Ids | None = None
    #: What it has answered, while and after `check` looks at that.
    answer: Any = NO_ANSWER
    #: It is over: what still runs of it is no part of it.
    ended = False
    #: Why its task was cut, while it unwinds.
    cut: str | None = None
    #: How often its task had been cancelled before, where Python counts that.
    cancelling = 0
    #: How much of the answer a consumer has had beside the call's own value, as tokens through a framework's callbacks.
    shown = 0

    def __init__(self, facts: Facts, began: int) -> None:
        self._facts = facts
        #: When it began, in nanoseconds on the driver's clock.
        self.began = began

    @property
    def number(self) -> int:
        """Its number over the whole call, from 1."""
        return self._facts.number

    @property
    def target(self) -> str:
        """The id of the target it is aimed at."""
        return self._facts.target

    @property
    def timeout(self) -> float:
        """How long it may take, in seconds: hand it on to the client."""
        return self._facts.timeout_ns / 1e9

    @property
    def connect_timeout(self) -> float:
        """How long a connection may take to open, in seconds; never more than `timeout`."""
        own = self._facts.connect_timeout
        return self.timeout if own is None else min(own, self.timeout)

    @property
    def read_timeout(self) -> float:
        """How long a client that cannot be interrupted may wait for bytes, in seconds: `timeout`, or the policy's
        `silence_timeout` where this is the attempt of a plain function's stream, and that is shorter."""
        return self.timeout

    @property
    def is_last(self) -> bool:
        """No attempt can follow it."""
        return self._facts.is_last

    @property
    def ends_by(self) -> int:
        """When it must end, in nanoseconds on the driver's clock."""
        return self.began + self._facts.timeout_ns

    @property
    def run(self) -> Run | None:
        """The run it belongs to."""
        return self._facts.run

    @property
    def ids(self) -> Ids:
        """What names the call."""
        if self._ids is None:
            self._ids = Ids.draw()
        return self._ids

    def named(self, ids: Ids) -> Attempt:
        """The same attempt, under these names."""
        self._ids = ids
        return self

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
    def delivered(self) -> Sequence[Any]:
        """Of a stream: the items that its consumer has had from earlier attempts. In mode `resume` go on from there."""
        return ()

    def heard(self) -> None:
        """Bytes have come from the server: a transport may say so, and a stream's `silence_timeout` starts anew. In a
        plain function's stream it raises `AttemptTimeout` where a timer of the stream has run out meanwhile."""

    @property
    def time_left(self) -> float:
        """What is left of its timeout, in seconds."""
        return max(0, self.ends_by - clock().now()) / 1e9

    def __repr__(self) -> str:
        return f"<Attempt {self.number} of {self.target}, {self.time_left:.3g} s left>"


CURRENT: ContextVar[Attempt | None] = ContextVar("reprieve_attempt", default=None)


def current_attempt() -> Attempt | None:
    """The attempt under way here, or `None` outside of one.

    Hand its `timeout` to clients that cannot be interrupted (its `read_timeout`, where they wait for bytes), and its
    `idempotency_key` to servers that know one.

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
    owner, began, ids = frame
    return Attempt(Facts.of_first(owner), began).named(ids)
