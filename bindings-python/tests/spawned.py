"""What goes to spawned processes: found there by its name."""

from __future__ import annotations

from failing import at_once

from reprieve import Policy, trace_of

POLICY = at_once(max_attempts=3)


def policy_of(policy: Policy) -> int:
    """How many attempts it makes."""
    calls = []

    def fail() -> None:
        calls.append(1)
        raise TimeoutError

    policy.execute(fail)
    return len(calls)


@at_once(max_attempts=2)
def decorated(n: int) -> int:
    """Adds one."""
    return n + 1


@at_once(max_attempts=2)
def fails() -> None:
    """Gives up after two attempts."""
    raise TimeoutError


def attempts_of(error: BaseException) -> int:
    """How many receipts came with it."""
    trace = trace_of(error)
    return len(trace.receipts) if trace else 0
