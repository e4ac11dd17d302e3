"""State that calls share: guards, a breaker on its own, and runs."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from . import _native
from ._clock import clock
from ._errors import ConfigError
from ._reading import well_formed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._policy import Policy
    from .types import BreakerFields

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_sets: weakref.WeakSet[Guards] = weakref.WeakSet()


class Guards:
    """Breakers, retry budgets, cooldowns and reported load. A policy makes its own; `guards=` shares one.

    Lives in this process: unpickled or forked, it starts fresh.

    >>> guards = Guards()
    >>> guards.report(queue_depth=1200, cost_ratio=0.4)
    >>> guards.describe()["load"]["queue_depth"]
    1200
    """

    def __init__(self) -> None:
        self._native = _native.Guards()
        _sets.add(self)

    def report(self, *, queue_depth: int | None = None, cost_ratio: float | None = None) -> None:
        """Reports load: jobs waiting, and cost as a share of what may be spent. What is left out stays as it was."""
        self._native.report(queue_depth, cost_ratio)

    def describe(self) -> dict[str, Any]:
        """What is open, cooling, benched or spent right now, for people."""
        described: dict[str, Any] = json.loads(self._native.describe(clock().now()))
        return described

    def breaker_state(self, policy: Policy, target: str | None = None) -> str | None:
        """`closed`, `open` or `half_open` for a target (default: the first); `None` without a breaker."""
        native = policy._native
        return self._native.breaker_state(native, target or native.targets[0], clock().now())

    def reset(self) -> None:
        """Forgets everything."""
        self._native.reset()

    def __reduce__(self) -> tuple[Any, ...]:
        return Guards, ()


def _after_fork() -> None:
    for guards in list(_sets):
        guards.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Breaker:
    """A circuit breaker on its own: a policy of one attempt. Takes the fields of a policy's `breaker`.

    >>> breaker = Breaker(consecutive_failures=2, open_for=30)
    >>> @breaker
    ... def ping() -> str:
    ...     return "pong"
    >>> ping(), breaker.state
    ('pong', 'closed')
    """

    def __init__(self, **config: Unpack[BreakerFields]) -> None:
        from ._policy import Policy

        self._policy = Policy(max_attempts=1, breaker=config)

    def __call__(self, function: F) -> F:
        return self._policy(function)

    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Calls the function, or raises `CircuitOpen`."""
        return self._policy.call(function, *args, **kwargs)

    @property
    def state(self) -> str:
        """`closed`, `open` or `half_open`."""
        return self._policy.guards.breaker_state(self._policy) or "closed"

    def reset(self) -> None:
        """Closes it and forgets every failure."""
        self._policy.guards.reset()


class Run:
    """An agent's run: a budget, a deadline and a gate that its calls share.

    `attempts`, `tokens` and `cost` bound all its calls together; `deadline` is in seconds (or a timedelta) from now.
    Each attempt reserves `estimate_tokens` and `estimate_cost` until it says what it used; an attempt that never says
    stays charged with the estimate, and `report()` counts it as unknown.

    >>> run = Run(attempts=10)
    >>> run.cancel("user left")
    >>> run.ended
    True
    """

    def __init__(
        self,
        *,
        attempts: int | None = None,
        tokens: int | None = None,
        cost: float | None = None,
        deadline: float | timedelta | None = None,
        estimate_tokens: int = 0,
        estimate_cost: float = 0.0,
    ) -> None:
        counts = {"attempts": attempts, "tokens": tokens, "estimate_tokens": estimate_tokens}
        amounts = {"cost": cost, "estimate_cost": estimate_cost}
        config: dict[str, float] = {}
        for name, value in {**counts, **amounts}.items():
            if value is None:
                continue
            if name in counts and not _is_count(value):
                raise ConfigError(name, repr(value), "a whole number from 0 to 2**63 - 1")
            if not (name in counts or _is_amount(value)):
                raise ConfigError(name, repr(value), "an amount from 0 to 1e9")
            config[name] = value
        if deadline is not None:
            config["deadline"] = clock().now() + nanoseconds("deadline", deadline)
        self._native = _native.Run(json.dumps(config))
        # Added to and copied in one step each, so that no lock is needed, which a fork could leave held.
        self._wakers: set[Callable[[], None]] = set()

    def cancel(self, reason: str = "cancelled") -> None:
        """Refuses every attempt from now on, wakes every wait, and cancels attempts that are coroutines."""
        self._native.cancel(well_formed(reason))
        self._wake()

    def end(self, state: str) -> None:
        """The run has come to an end, such as `SUCCEEDED`: the same as cancelling, under another name."""
        self._native.end(well_formed(state))
        self._wake()

    def report(self) -> dict[str, Any]:
        """What is used, reserved and left."""
        report: dict[str, Any] = json.loads(self._native.report())
        return report

    @property
    def ended(self) -> bool:
        """It was cancelled or has ended."""
        return self._native.ended

    def _wake(self) -> None:
        for waker in list(self._wakers):
            waker()

    def _join(self, waker: Callable[[], None]) -> None:
        self._wakers.add(waker)

    def _part(self, waker: Callable[[], None]) -> None:
        self._wakers.discard(waker)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_amount(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1e9


def nanoseconds(field: str, duration: float | str | timedelta) -> int:
    """A duration as a policy takes it; its field is what an error names."""
    if isinstance(duration, timedelta):
        microseconds = duration // timedelta(microseconds=1)
        duration = f"{microseconds}us" if microseconds >= 0 else duration.total_seconds()
    try:
        return _native.parse_duration(duration)
    except ConfigError as error:
        raise ConfigError(field, error.value, error.allowed) from None
