"""`start()`: a call beside its caller, to be looked at, woken, cancelled, written down and waited for."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from failing import Script, at_once, fails, still

from reprieve import Call, CallCancelled, MisuseError, current_attempt, testing, trace_of

#: What nobody waits for, how long a machine may take to notice that, and when a test gives up, in seconds.
LONG, PROMPT, PATIENT = 250, 30.0, 60.0
SLOW = {"backoff": {"base": LONG, "max": LONG}}


def until(true: Any, seconds: float = PATIENT) -> None:
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "it never came true"
        time.sleep(0.001)


def test_the_value_or_the_error_of_the_call() -> None:
    assert at_once().start(fails(1), 1, two=2).result(PATIENT) == "ok"
    error = TimeoutError()
    handle = at_once().start(Script(error))
    for _ in range(2):
        with pytest.raises(TimeoutError) as caught:
            handle.result(PATIENT)
        assert caught.value is error
    assert trace_of(error) is not None
    assert handle.state == "ended"


def test_result_gives_up_waiting_and_the_call_goes_on() -> None:
    gate = threading.Event()
    handle = at_once().start(gate.wait)
    until(lambda: handle.state == "in_flight")
    with pytest.raises(TimeoutError, match="it goes on"):
        handle.result(0.01)
    assert handle.state == "in_flight"
    gate.set()
    assert handle.result(PATIENT) is True


def test_what_is_no_exception_comes_out_of_result() -> None:
    handle = at_once().start(Script(SystemExit(3)))
    for _ in range(2):
        with pytest.raises(SystemExit):
            handle.result(PATIENT)


@pytest.mark.parametrize("event", [None, threading.Event()])
def test_cancel_ends_a_wait_at_once(event: threading.Event | None) -> None:
    handle = still(**SLOW).bind(cancel=event).start(function := fails(9))
    until(lambda: handle.state == "waiting")
    began = time.monotonic()
    handle.cancel("no longer needed")
    with pytest.raises(CallCancelled, match="no longer needed") as caught:
        handle.result(PATIENT)
    assert time.monotonic() - began < PROMPT
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert function.count == 1


def test_wake_makes_no_wait_shorter() -> None:
    began = time.monotonic()
    handle = still(backoff={"base": 0.05, "max": 0.05}).start(fails(1))
    while handle.state != "ended":
        handle.wake()
        time.sleep(0.001)
    assert handle.result(PATIENT) == "ok"
    assert time.monotonic() - began >= 0.05


def test_cancel_during_an_attempt_of_a_plain_function_lets_it_finish() -> None:
    gate = threading.Event()

    def late() -> str:
        gate.wait()
        return "late"

    handle = at_once().start(late)
    until(lambda: handle.state == "in_flight")
    handle.cancel()
    gate.set()
    assert handle.result(PATIENT) == "late"


def test_cancel_during_an_attempt_that_then_fails() -> None:
    gate = threading.Event()

    def late() -> None:
        gate.wait()
        raise TimeoutError

    handle = at_once().start(late)
    handle.cancel()
    gate.set()
    with pytest.raises(CallCancelled):
        handle.result(PATIENT)


def test_a_snapshot_goes_on_elsewhere() -> None:
    handle = still(**SLOW).bind(scene="s").start(fails(9))
    until(lambda: handle.state == "waiting")
    snapshot = handle.snapshot()
    handle.cancel()
    assert json.loads(snapshot)
    call, action = Call.restore(snapshot, 0, int(time.time() * 1000))
    assert (action.kind, call.state) == ("retry", "waiting")
    assert action.after is not None
    assert LONG - 60 < action.after <= LONG
    assert call.begin(action.after_ns or 0).kind == "attempt"
    assert call.records[0]["scene"] == "s"


def test_the_outer_attempt_is_seen_from_the_thread() -> None:
    def inner() -> Any:
        attempt = current_attempt()
        assert attempt is not None
        return attempt.timeout

    def outer() -> Any:
        return at_once().start(inner).result(PATIENT)

    assert LONG - 60 < at_once(attempt_timeout=LONG).call(outer) <= LONG


def test_a_coroutine_is_a_task() -> None:
    async def main() -> None:
        handle = at_once().start(fails(1).coroutine())
        assert handle.state == "ready"
        assert await handle == "ok"
        assert await handle == "ok"
        assert handle.state == "ended"

    asyncio.run(main())


def test_result_never_blocks_the_loop_of_its_task() -> None:
    async def main() -> None:
        handle = at_once().start(asyncio.sleep, 0.001, "slept")
        with pytest.raises(MisuseError, match="await"):
            handle.result(PATIENT)
        assert await handle == "slept"
        assert await asyncio.to_thread(handle.result, PATIENT) == "slept"

    asyncio.run(main())


@pytest.mark.parametrize("from_thread", [False, True])
@pytest.mark.parametrize("during", ["wait", "attempt"])
def test_cancel_of_a_task_s_call(during: str, from_thread: bool) -> None:
    unwound: list[bool] = []

    async def fail() -> None:
        if during == "wait":
            raise TimeoutError
        try:
            await asyncio.sleep(LONG)
        finally:
            unwound.append(True)

    async def main() -> None:
        handle = still(**SLOW).start(fail)
        while handle.state != {"wait": "waiting", "attempt": "in_flight"}[during]:
            await asyncio.sleep(0)
        began = time.monotonic()
        if from_thread:
            await asyncio.to_thread(handle.cancel)
        else:
            handle.cancel()
        with pytest.raises(CallCancelled):
            await handle
        assert time.monotonic() - began < PROMPT
        task = asyncio.current_task()
        if hasattr(task, "cancelling"):
            assert task.cancelling() == 0
        await asyncio.sleep(0)  # nothing is left that would be cancelled here

    asyncio.run(main())
    assert unwound == [True] * (during == "attempt")


def test_a_cancelled_task_s_handle_says_so_ever_after() -> None:
    async def main() -> None:
        handle = at_once().start(asyncio.sleep, LONG)
        await asyncio.sleep(0)
        handle._task.cancel()
        for _ in range(2):
            with pytest.raises(asyncio.CancelledError):
                await handle
        assert handle.state == "ended"

    asyncio.run(main())


def test_under_trio_it_runs_when_awaited() -> None:
    trio = pytest.importorskip("trio")
    pytest.importorskip("trio.testing")

    async def main() -> None:
        handle = at_once().start(fails(1).coroutine())
        assert handle.state == "ready"
        assert await handle == "ok"
        assert await handle == "ok"
        slow = still(**SLOW).start(trio.sleep, LONG)
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def _() -> None:
                with pytest.raises(CallCancelled):
                    await slow

            await trio.testing.wait_all_tasks_blocked()
            slow.cancel()

    trio.run(main)


def test_on_a_virtual_clock() -> None:
    with testing.virtual() as clock:
        assert still(**SLOW).start(fails(2)).result(PATIENT) == "ok"
    assert clock.sleeps == [LONG, LONG]
