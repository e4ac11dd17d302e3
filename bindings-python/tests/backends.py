"""Coroutines under asyncio and under trio, on the happy path and beside it: what the tests of their calls share.

A test file makes both its own: `__all__ = ["_no_never_awaited"]`, and warnings that are errors.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import trio

from reprieve import Run

#: Where a task knows how often it was cancelled.
counts = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 does not count cancellations")

#: What nobody waits for, and how long a machine may take to notice that.
LONG, PROMPT = 300.0, 30.0
#: Keeps a call from the happy path, and makes it listen.
OPTIONS: list[dict[str, Any]] = [{}, {"idempotency_key": "k"}, {"cancel": threading.Event()}, {"run": Run()}]
each_option = pytest.mark.parametrize("options", OPTIONS, ids=["happy", "slow", "event", "run"])
each_backend = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@pytest.fixture(autouse=True)
def _no_never_awaited() -> Iterator[None]:
    """A coroutine that nobody has awaited says so when it is collected."""
    yield
    gc.collect()


def run(backend: str, main: Callable[[], Awaitable[Any]]) -> Any:
    """Runs it, and sees that no task is left and that the task's cancellations are all taken back."""
    if backend == "trio":
        return trio.run(main)

    async def watched() -> Any:
        try:
            return await main()
        finally:
            task = asyncio.current_task()
            assert asyncio.all_tasks() == {task}
            if sys.version_info >= (3, 11):
                assert task is not None
                assert task.cancelling() == 0

    return asyncio.run(watched())


async def sleep(backend: str, seconds: float) -> None:
    """Sleeps under either."""
    await (asyncio.sleep(seconds) if backend == "asyncio" else trio.sleep(seconds))
