"""Faults of the user's own functions beside the call: sinks, listeners, predicates.

They never change how a call ends. Each is counted under the function's role, and logged once for each function.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter

logger = logging.getLogger("reprieve")

#: Functions of which a fault is logged; those of any more are only counted.
MOST_LOGGED = 1_000

_lock = threading.Lock()
_counts: Counter[str] = Counter()
_logged: set[tuple[str, str]] = set()


def _after_fork() -> None:
    """Another thread of the parent's may have held the lock, and is not here to release it."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def note(role: str, function: object, error: Exception) -> None:
    """Counts a fault, and logs the first of each function."""
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    with _lock:
        _counts[role] += 1
        first = (role, name) not in _logged and len(_logged) < MOST_LOGGED
        if first:
            _logged.add((role, name))
    if first:
        logger.warning("reprieve: the %s %s raised; the call goes on without it", role, name, exc_info=error)


def faults() -> dict[str, int]:
    """How often a user's own function raised beside a call, by its role: `sink`, `on_event`, `classify`, `retry_if`,
    `backoff`, and what closes a stream's source, `close`.

    A number that grows is a signal: records or events are being lost.

    >>> import reprieve
    >>> reprieve.faults().get("sink", 0)
    0
    """
    with _lock:
        return dict(_counts)
