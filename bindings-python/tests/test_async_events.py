"""Calls of coroutines that an event, a run or a handle cancels."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import trio
from backends import LONG, PROMPT, _no_never_awaited, each_backend, run, sleep
from failing import at_once, fails, still

from reprieve import CallCancelled, Run

__all__ = ["_no_never_awaited"]
pytestmark = [pytest.mark.filterwarnings("error")]


def events(backend: str) -> list[tuple[dict[str, Any], Callable[[], None]]]:
    own = asyncio.Event() if backend == "asyncio" else trio.Event()
    threads, run_, wide = threading.Event(), Run(), Run()
    return [
        ({"cancel": threads}, threads.set),
        ({"cancel": own}, own.set),
        ({"run": run_}, lambda: run_.cancel("over")),
        ({"run": wide, "cancel": threading.Event()}, lambda: wide.cancel("over")),
    ]


@each_backend
@pytest.mark.parametrize("from_thread", [False, True])
@pytest.mark.parametrize("during", ["attempt", "wait"])
@pytest.mark.parametrize("which", range(4))
def test_an_event_or_a_run_ends_it_at_once(backend: str, from_thread: bool, during: str, which: int) -> None:
    unwound: list[bool] = []

    async def main() -> Any:
        options, cancel = events(backend)[which]
        if from_thread and which == 1:
            return None  # such an event is not to be set from a thread

        async def slow() -> None:
            if from_thread:
                threading.Timer(0.02, cancel).start()
            else:
                _later(backend, 0.02, cancel)
            if during == "wait":
                raise TimeoutError
            try:
                await sleep(backend, LONG)
            finally:
                unwound.append(True)

        policy = still(backoff={"base": LONG, "max": LONG}).bind(retry_if=lambda e, f: True, **options)
        began = time.monotonic()
        result = await policy.execute(slow)
        assert time.monotonic() - began < PROMPT
        await sleep(backend, 0.001)
        return result

    result = run(backend, main)
    if result is not None:
        assert isinstance(result.error, CallCancelled)
        assert (result.stop_reason, result.attempts) == ("cancelled", 1)
        assert unwound == [True] * (during == "attempt")


def _later(backend: str, seconds: float, call: Callable[[], None]) -> None:
    if backend == "asyncio":
        asyncio.get_running_loop().call_later(seconds, call)
        return

    async def wait() -> None:
        await trio.sleep(seconds)
        call()

    trio.lowlevel.spawn_system_task(wait)


@each_backend
def test_an_event_set_beforehand_starts_nothing(backend: str) -> None:
    event = threading.Event()
    event.set()
    function = fails(0)

    async def main() -> Any:
        return await at_once().bind(cancel=event).execute(function.coroutine())

    assert run(backend, main).stop_reason == "cancelled"
    assert function.count == 0


@each_backend
@pytest.mark.parametrize("suspend", [False, True])
def test_an_event_set_by_the_function_itself(backend: str, suspend: bool) -> None:
    event = threading.Event()

    async def sets() -> str:
        event.set()
        if suspend:
            await sleep(backend, 0)
        return "value"

    async def main() -> Any:
        result = await at_once().bind(cancel=event).execute(sets)
        await sleep(backend, 0.02)  # nothing of it comes late
        return result

    assert run(backend, main).value in ("value", None)


@pytest.mark.parametrize("how", ["handle", "run"])
def test_a_wake_as_the_attempt_ends_cuts_nothing_else(how: str) -> None:
    async def main() -> None:
        for _ in range(20):
            gate = asyncio.Event()
            run_ = Run()
            handle = at_once().bind(run=run_).start(gate.wait)
            await asyncio.sleep(0)
            after = asyncio.create_task(_after(handle))
            await asyncio.sleep(0)
            gate.set()
            handle.cancel() if how == "handle" else run_.cancel()
            assert await after in ("went on", "cancelled")

    run("asyncio", main)


async def _after(handle: Any) -> str:
    try:
        await handle
    except CallCancelled:
        return "cancelled"
    for _ in range(3):
        await asyncio.sleep(0)
    return "went on"


@each_backend
def test_an_event_that_cannot_be_asked_is_no_event(backend: str) -> None:
    class Broken:
        def is_set(self) -> bool:
            raise ZeroDivisionError

    async def main() -> Any:
        return await at_once().bind(cancel=Broken()).call(fails(1).coroutine())

    assert run(backend, main) == "ok"
