"""Calls of coroutines, under asyncio and trio: timeouts, cancellation from every side, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import inspect
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from unittest.mock import AsyncMock

import jumping
import pytest
from failing import Script, at_once, fails, still

from reprieve import AttemptTimeout, CallCancelled, Policy, Run, current_attempt, testing, trace_of

trio = pytest.importorskip("trio")
pytestmark = [pytest.mark.filterwarnings("error")]
counts = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 does not count cancellations")

#: What nobody waits for, and how long a machine may take to notice that.
LONG, PROMPT = 300.0, 30.0
#: Keeps a call from the happy path, and makes it listen.
OPTIONS: list[dict[str, Any]] = [{}, {"idempotency_key": "k"}, {"cancel": threading.Event()}, {"run": Run()}]
BACKENDS = ["asyncio", "trio"]
each_option = pytest.mark.parametrize("options", OPTIONS, ids=["happy", "slow", "event", "run"])
each_backend = pytest.mark.parametrize("backend", BACKENDS)


@pytest.fixture(autouse=True)
def _no_never_awaited() -> Iterator[None]:
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
    await (asyncio.sleep(seconds) if backend == "asyncio" else trio.sleep(seconds))


# --- the loop ---


@each_backend
@each_option
def test_a_coroutine_function_is_tried_again(backend: str, options: dict[str, Any]) -> None:
    function = fails(2)

    async def main() -> Any:
        return await at_once().bind(**options).call(function.coroutine(), 1, self=2)

    assert run(backend, main) == "ok"
    assert function.calls == [((1,), {"self": 2})] * 3


@each_backend
def test_giving_up_raises_the_very_exception(backend: str, clock: testing.VirtualClock) -> None:
    errors = [TimeoutError(n) for n in range(3)]

    async def main() -> None:
        await still().call(Script(*errors).coroutine())

    with pytest.raises(TimeoutError) as caught:
        run(backend, main)
    assert caught.value is errors[2]
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert trace_of(caught.value) is not None
    assert clock.sleeps == [0.5, 1.0]


@each_backend
def test_execute_answers_a_result(backend: str) -> None:
    async def main() -> Any:
        return await at_once().execute(fails(9).coroutine())

    result = run(backend, main)
    assert (result.ok, result.attempts, result.stop_reason) == (False, 3, "attempts_exhausted")


def test_outside_of_any_loop_it_says_so() -> None:
    coroutine = at_once().call(fails(0).coroutine())
    with pytest.raises(RuntimeError, match="asyncio and trio"):
        coroutine.send(None)  # type: ignore[attr-defined]


def test_trio_as_a_guest_of_asyncio() -> None:
    async def guest() -> Any:
        return await at_once(max_attempts=2, attempt_timeout=0.02).execute(trio.sleep, LONG)

    async def main() -> Any:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        trio.lowlevel.start_guest_run(
            guest,
            run_sync_soon_threadsafe=asyncio.get_running_loop().call_soon_threadsafe,
            done_callback=done.set_result,
        )
        return (await done).unwrap()

    result = run("asyncio", main)
    assert isinstance(result.error, AttemptTimeout)
    assert result.attempts == 2


def test_a_plain_function_inside_of_a_loop_stays_plain() -> None:
    async def main() -> Any:
        return at_once().call(fails(1))

    assert run("asyncio", main) == "ok"


def test_an_async_mock_is_a_coroutine_function() -> None:
    mock = AsyncMock(side_effect=[TimeoutError(), 5])

    async def main() -> Any:
        return await at_once().call(mock)

    assert run("asyncio", main) == 5
    assert mock.await_count == 2


@pytest.mark.parametrize("value", [None, 0, "", [], False])
def test_a_falsy_result_is_a_result(value: Any) -> None:
    async def main() -> Any:
        return await at_once().call(Script(TimeoutError(), value).coroutine())

    assert run("asyncio", main) is value


# --- timeouts ---


@each_backend
@each_option
def test_a_timed_out_attempt_is_cancelled_and_awaited(backend: str, options: dict[str, Any]) -> None:
    story: list[str] = []

    async def slow() -> None:
        try:
            await sleep(backend, LONG)
        finally:
            story.append("unwinding")
            with trio.CancelScope(shield=True) if backend == "trio" else contextlib.nullcontext():
                await sleep(backend, 0.01)
            story.append("unwound")

    async def main() -> Any:
        return await at_once(max_attempts=2, attempt_timeout=0.02).bind(**options).execute(slow)

    result = run(backend, main)
    assert story == ["unwinding", "unwound"] * 2
    assert isinstance(result.error, AttemptTimeout)
    assert isinstance(result.error, TimeoutError)
    assert (result.failure.kind, result.stop_reason, result.attempts) == ("timeout", "attempts_exhausted", 2)
    assert "longer than 0.02 s" in str(result.error)


@each_backend
@each_option
def test_a_late_value_is_a_success(backend: str, options: dict[str, Any]) -> None:
    async def stubborn() -> str:
        try:
            await sleep(backend, LONG)
        except (asyncio.CancelledError, trio.Cancelled):
            return "late"
        return "never"

    async def main() -> Any:
        value = await at_once(attempt_timeout=0.02).bind(**options).call(stubborn)
        await sleep(backend, 0.001)  # what was taken back does not come after all
        return value

    assert run(backend, main) == "late"


@each_backend
@each_option
def test_an_error_while_unwinding_is_the_attempt_s_own(backend: str, options: dict[str, Any]) -> None:
    async def stubborn() -> str:
        try:
            await sleep(backend, LONG)
        except BaseException:
            raise ConnectionResetError from None
        return "never"

    async def main() -> Any:
        return await at_once(max_attempts=2, attempt_timeout=0.02).bind(**options).execute(stubborn)

    result = run(backend, main)
    assert (result.failure.kind, result.attempts) == ("transport", 2)


def test_timeouts_that_fire_in_one_turn_each_cut_their_own() -> None:
    async def slow() -> None:
        await asyncio.sleep(LONG)

    async def main() -> list[Any]:
        policy = at_once(max_attempts=1, attempt_timeout=0.02)
        quick = at_once(max_attempts=1, attempt_timeout=LONG)
        calls = [policy.execute(slow) if n % 2 else policy(slow)() for n in range(50)]
        return await asyncio.gather(*calls, quick(asyncio.sleep)(0.05, "quick"), return_exceptions=True)

    *cut, quick = run("asyncio", main)
    assert quick == "quick"
    assert all(isinstance(getattr(r, "error", r), AttemptTimeout) for r in cut)


def test_a_shorter_timeout_fires_before_a_longer_one_that_was_there_first() -> None:
    async def main() -> float:
        began = time.monotonic()
        long = asyncio.create_task(at_once(attempt_timeout=LONG)(asyncio.sleep)(LONG))
        await asyncio.sleep(0)
        with pytest.raises(AttemptTimeout):
            await at_once(attempt_timeout=0.02, max_attempts=1)(asyncio.sleep)(LONG)
        long.cancel()
        await asyncio.wait([long])
        return time.monotonic() - began

    assert run("asyncio", main) < PROMPT


@each_backend
def test_nested_timeouts_the_inner_first(backend: str) -> None:
    async def inner() -> Any:
        return await at_once(max_attempts=2, attempt_timeout=0.02).execute(sleep, backend, LONG)

    async def main() -> Any:
        return await at_once(max_attempts=2, attempt_timeout=LONG).call(inner)

    result = run(backend, main)
    assert isinstance(result.error, AttemptTimeout)
    assert result.attempts == 2


@each_backend
def test_nested_timeouts_the_outer_first(backend: str) -> None:
    inner_attempts: list[int] = []

    async def slow() -> None:
        attempt = current_attempt()
        assert attempt is not None
        inner_attempts.append(attempt.number)
        await sleep(backend, LONG)

    async def inner() -> Any:
        return await at_once(attempt_timeout=LONG, nested="independent").call(slow)

    async def main() -> Any:
        return await at_once(max_attempts=2, attempt_timeout=0.03).execute(inner)

    result = jumping.run(main, trio if backend == "trio" else asyncio)
    assert isinstance(result.error, AttemptTimeout)
    assert inner_attempts == [1, 1]
    assert result.attempts == 2


def test_the_total_timeout_cuts_an_attempt_too() -> None:
    async def main() -> Any:
        return await at_once(total_timeout=0.03).execute(asyncio.sleep, LONG)

    result = run("asyncio", main)
    assert (result.stop_reason, result.attempts) == ("deadline_exceeded", 1)


def test_a_coroutine_that_blocks_is_late_and_a_success() -> None:
    async def blocks() -> str:
        time.sleep(0.03)
        return "late"

    async def main() -> Any:
        return await at_once(attempt_timeout=0.01).call(blocks)

    assert run("asyncio", main) == "late"


@each_option
def test_a_coroutine_that_blocks_then_waits_is_cut(options: dict[str, Any]) -> None:
    async def blocks() -> None:
        time.sleep(0.03)
        await asyncio.sleep(LONG)

    async def main() -> Any:
        return await at_once(attempt_timeout=0.01, max_attempts=1).bind(**options).execute(blocks)

    assert isinstance(run("asyncio", main).error, AttemptTimeout)


# --- cancelled from outside ---


@each_option
@pytest.mark.parametrize("during", ["attempt", "wait", "second attempt"])
def test_a_cancelled_task_stops_at_once(options: dict[str, Any], during: str) -> None:
    lines: list[str] = []
    attempts = 0

    async def slow() -> None:
        nonlocal attempts
        attempts += 1
        if during == "wait" or (during == "second attempt" and attempts == 1):
            raise TimeoutError
        await asyncio.sleep(LONG)

    backoff = {"base": LONG if during == "wait" else 0, "max": LONG}
    expected = 2 if during == "second attempt" else 1

    async def main() -> None:
        policy = Policy(jitter={"kind": "none"}, backoff=backoff).bind(**options)
        task = asyncio.create_task(policy.bind(retry_if=lambda e, f: True).call(slow))  # type: ignore[arg-type]
        while attempts < expected:
            await asyncio.sleep(0)
        await asyncio.sleep(0.02)
        began = time.monotonic()
        task.cancel("why")
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        assert time.monotonic() - began < PROMPT

    run("asyncio", main)
    assert attempts == expected
    assert lines == []
    assert current_attempt() is None


def test_a_cancelled_call_is_written_down() -> None:
    lines: list[str] = []

    async def main() -> None:
        task = asyncio.create_task(at_once().bind(sink=lines.append).call(asyncio.sleep, LONG))  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    run("asyncio", main)
    assert len(lines) == 2
    assert all('"cancelled"' in line for line in lines)


@counts
@each_option
@pytest.mark.parametrize("ours_first", [False, True])
def test_a_cancellation_in_the_turn_of_our_timer_wins(options: dict[str, Any], ours_first: bool) -> None:
    attempts = 0

    async def slow() -> None:
        nonlocal attempts
        attempts += 1
        await asyncio.sleep(LONG)

    async def main() -> None:
        task = asyncio.create_task(at_once(attempt_timeout=0.1).bind(**options).call(slow))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        loop.call_later(0.14 if ours_first else 0.05, task.cancel)
        time.sleep(0.2)  # both are due when it is over
        await asyncio.wait([task])
        assert task.cancelled()

    run("asyncio", main)
    assert attempts == 1


@counts
@each_option
def test_a_cancellation_that_the_function_turns_into_an_error_is_not_retried(options: dict[str, Any]) -> None:
    attempts = 0

    async def converts() -> None:
        nonlocal attempts
        attempts += 1
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            raise ConnectionResetError from None

    async def main() -> None:
        task = asyncio.create_task(at_once().bind(**options).call(converts))  # type: ignore[arg-type]
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert isinstance(task.exception(), ConnectionResetError)

    run("asyncio", main)
    assert attempts == 1


@each_option
def test_a_cancelled_error_of_somebody_else_s_goes_through(options: dict[str, Any]) -> None:
    async def awaits_a_cancelled_task() -> None:
        task = asyncio.create_task(asyncio.sleep(LONG))
        task.cancel()
        await task

    async def main() -> None:
        with pytest.raises(asyncio.CancelledError):
            await at_once().bind(**options).call(awaits_a_cancelled_task)

    run("asyncio", main)


@counts
@each_option
def test_asyncio_timeout_around_a_call(options: dict[str, Any]) -> None:
    async def main() -> None:
        for backoff, function in ((0, asyncio.sleep), (LONG, fails(9).coroutine())):
            policy = still(backoff={"base": backoff, "max": LONG}).bind(**options)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):  # type: ignore[attr-defined]
                    await policy.call(function, LONG)
            task = asyncio.current_task()
            assert task.cancelling() == 0  # type: ignore[union-attr]
            await asyncio.sleep(0.001)

    run("asyncio", main)


@counts
@each_option
def test_a_task_group_cancels_its_calls(options: dict[str, Any]) -> None:
    attempts = fails(0)

    async def main() -> None:
        with pytest.raises(BaseException) as caught:  # noqa: PT011, PT012
            async with asyncio.TaskGroup() as group:  # type: ignore[attr-defined]
                group.create_task(at_once().bind(**options).call(slow))
                await asyncio.sleep(0.01)
                raise KeyError
        assert caught.value.subgroup(KeyError) is not None

    async def slow() -> None:
        attempts()
        await asyncio.sleep(LONG)

    run("asyncio", main)
    assert attempts.count == 1


@counts
def test_a_task_group_within_an_attempt_is_cut_with_it() -> None:
    unwound: list[int] = []

    async def child(n: int) -> None:
        try:
            await asyncio.sleep(LONG)
        finally:
            unwound.append(n)

    async def family() -> None:
        async with asyncio.TaskGroup() as group:  # type: ignore[attr-defined]
            for n in range(3):
                group.create_task(child(n))

    async def main() -> Any:
        return await at_once(max_attempts=2, attempt_timeout=0.02).execute(family)

    assert isinstance(run("asyncio", main).error, AttemptTimeout)
    assert sorted(unwound) == [0, 0, 1, 1, 2, 2]


def test_a_shielded_call_goes_on() -> None:
    function = fails(1)

    async def main() -> None:
        inner = asyncio.ensure_future(still(backoff={"base": 0.02, "max": 0.02}).call(function.coroutine()))
        outer = asyncio.create_task(_shield(inner))
        await asyncio.sleep(0.005)
        outer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await outer
        assert await inner == "ok"

    run("asyncio", main)
    assert function.count == 2


async def _shield(inner: Any) -> Any:
    return await asyncio.shield(inner)


def test_a_shield_within_an_attempt_is_left_running() -> None:
    async def main() -> None:
        gate = asyncio.Event()
        inner = asyncio.ensure_future(gate.wait())
        with pytest.raises(AttemptTimeout):
            await at_once(max_attempts=2, attempt_timeout=0.01)(_shield)(inner)
        gate.set()
        assert await inner is True

    run("asyncio", main)


@each_option
def test_trio_scopes_and_nurseries_cancel_a_call(options: dict[str, Any]) -> None:
    attempts = fails(0)

    async def slow() -> None:
        attempts()
        await trio.sleep(LONG)

    async def main() -> None:
        policy = at_once().bind(**options)
        with trio.move_on_after(0.02) as scope:
            await policy.call(slow)
        assert scope.cancelled_caught
        with trio.move_on_after(0.02) as scope:
            await still(backoff={"base": LONG, "max": LONG}).bind(**options).call(fails(9).coroutine())
        assert scope.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(policy.call, slow)
            await trio.sleep(0.01)
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert attempts.count == 2


@counts
@each_option
def test_a_trio_nursery_within_an_attempt(options: dict[str, Any]) -> None:
    async def fails_while_cancelled() -> None:
        try:
            await trio.sleep(LONG)
        finally:
            raise ConnectionResetError

    async def family() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, LONG)
            nursery.start_soon(fails_while_cancelled)

    async def main() -> Any:
        return await at_once(max_attempts=2, attempt_timeout=0.02).bind(**options).execute(family)

    result = trio.run(main)
    assert (result.failure.kind, result.attempts) == ("transport", 2)
    assert [type(e) for e in result.error.exceptions] == [ConnectionResetError]


@each_backend
@each_option
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_is_no_exception_is_never_retried(
    backend: str, options: dict[str, Any], error: type[BaseException]
) -> None:
    function = Script(error())

    async def main() -> None:
        with pytest.raises(error):
            await at_once().bind(retry_if=lambda e, f: True, **options).call(function.coroutine())

    run(backend, main)
    assert function.count == 1


# --- cancelled by an event, a run or a handle ---


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


# --- many, contexts, leftovers ---


def test_a_thousand_calls_at_once() -> None:
    async def one(n: int, script: Script) -> int:
        await asyncio.sleep(0)
        script()
        return n

    async def main() -> list[int]:
        policy = at_once(attempt_timeout=LONG)
        return await asyncio.gather(*(policy.call(one, n, fails(n % 3)) for n in range(1000)))

    assert run("asyncio", main) == list(range(1000))


@each_backend
@each_option
def test_context_variables_go_in_and_come_out(backend: str, options: dict[str, Any]) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

    async def count() -> int:
        before = variable.get()
        variable.set(before + 1)
        if before < 12:
            raise TimeoutError
        return before

    async def main() -> tuple[int, int]:
        variable.set(10)
        return await at_once().bind(**options).call(count), variable.get()

    assert run(backend, main) == (12, 13)


@each_option
def test_no_timer_of_a_finished_call_is_left(options: dict[str, Any]) -> None:
    async def main() -> list[Any]:
        policy = at_once(attempt_timeout=LONG).bind(**options)
        for _ in range(5):
            await policy.call(fails(2).coroutine())
        loop: Any = asyncio.get_running_loop()
        return [timer for timer in loop._scheduled if not timer.cancelled()]

    assert len(run("asyncio", main)) <= 1  # the one that all first attempts of a loop share


def test_one_loop_after_another() -> None:
    policy = at_once(max_attempts=1, attempt_timeout=0.02)
    decorated = policy(asyncio.sleep)
    for _ in range(3):
        assert asyncio.run(decorated(0, "value")) == "value"
        with pytest.raises(AttemptTimeout):
            asyncio.run(decorated(LONG))


def test_loops_in_threads_at_once() -> None:
    decorated = at_once(max_attempts=2, attempt_timeout=0.02)(asyncio.sleep)
    outcomes: list[Any] = []

    def loop() -> None:
        async def main() -> list[Any]:
            return await asyncio.gather(decorated(0, "value"), decorated(LONG), return_exceptions=True)

        outcomes.append(asyncio.run(main()))

    threads = [threading.Thread(target=loop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(o[0], type(o[1])) for o in outcomes] == [("value", AttemptTimeout)] * 4


def test_a_decorated_method_of_a_class() -> None:
    class Client:
        @at_once()
        async def ask(self, n: int) -> int:
            """Asks."""
            return n

    assert run("asyncio", lambda: Client().ask(3)) == 3
    assert list(inspect.signature(Client().ask).parameters) == ["n"]
    assert Client.ask.__doc__ == "Asks."
