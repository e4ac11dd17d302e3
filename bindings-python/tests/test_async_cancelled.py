"""Calls of coroutines that are cancelled from outside: by tasks, groups, scopes, and what is no exception."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import trio
from backends import LONG, PROMPT, _no_never_awaited, counts, each_backend, each_option, run
from failing import Script, at_once, fails, still

from reprieve import AttemptTimeout, Policy, current_attempt

__all__ = ["_no_never_awaited"]
pytestmark = [pytest.mark.filterwarnings("error")]


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
