"""Functions that fail as told, and policies without chance: what the driver tests share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import pytest

from reprieve import Policy

#: Waits are exact.
STILL: dict[str, Any] = {"jitter": {"kind": "none"}}
#: No waits at all: for tests in real time.
NO_WAIT: dict[str, Any] = {"backoff": {"kind": "constant", "base": 0, "max": 0}, "jitter": {"kind": "none"}}


class Status(Exception):
    """An HTTP status, as SDKs raise it."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(f"status {status}")
        self.status_code = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def still(**fields: Any) -> Policy:
    """A policy whose waits are exact."""
    return Policy(**{**STILL, **fields})


def at_once(**fields: Any) -> Policy:
    """A policy that never waits between attempts."""
    return Policy(**{**NO_WAIT, **fields})


class Script:
    """A function that plays a list: exceptions are raised, the rest is answered. Counts its calls."""

    def __init__(self, *steps: Any) -> None:
        self.steps = list(steps)
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((args, kwargs))
        step = self.steps.pop(0) if len(self.steps) > 1 else self.steps[0]
        if isinstance(step, BaseException):
            raise step
        return step

    @property
    def count(self) -> int:
        return len(self.calls)

    def coroutine(self) -> Callable[..., Awaitable[Any]]:
        """The same as a coroutine function."""

        async def play(*args: Any, **kwargs: Any) -> Any:
            return self(*args, **kwargs)

        return play


def fails(times: int, value: Any = "ok", error: Callable[[], BaseException] = TimeoutError) -> Script:
    """Fails so many times, then answers."""
    return Script(*(error() for _ in range(times)), value)


def decisions(records: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What was decided, without what the clock says."""
    return [(r["attempt"], r["target"], r["kind"], r["decision"], r["reason"], r["delay_ms"]) for r in records]


def failure_of(call: Callable[[], object]) -> BaseException:
    """What the call raises."""
    try:
        call()
    except BaseException as error:
        return error
    pytest.fail("the call succeeded")
