"""`current_attempt()`: what the function sees of its attempt, on every path and in every flow of control."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from failing import at_once, still

from reprieve import Attempt, Policy, current_attempt, testing

PLAIN: dict[str, Any] = {}
#: Any of these keeps a call from the happy path.
SLOW: dict[str, Any] = {"idempotency_key": "given"}


def seen() -> Attempt:
    attempt = current_attempt()
    assert attempt is not None
    return attempt


def test_outside_of_an_attempt_there_is_none() -> None:
    assert current_attempt() is None
    at_once().call(lambda: None)
    assert current_attempt() is None


@pytest.mark.parametrize("options", [PLAIN, SLOW])
def test_the_first_attempt_has_every_field(options: dict[str, Any]) -> None:
    policy = Policy(attempt_timeout=500, connect_timeout=2, targets=[{"id": "a"}, {"id": "b"}]).bind(**options)
    for attempt in (policy.call(seen), asyncio.run(policy.call(acall))):
        assert (attempt.number, attempt.target, attempt.timeout, attempt.connect_timeout) == (1, "a", 500.0, 2.0)
        assert not attempt.is_last
        assert 400 < attempt.time_left <= 500
        assert len(attempt.trace_id) == 32
        assert attempt.idempotency_key
        assert "Attempt 1 of a" in repr(attempt)


async def acall() -> Attempt:
    await asyncio.sleep(0)
    return seen()


@pytest.mark.parametrize("options", [PLAIN, SLOW])
def test_numbers_and_last(options: dict[str, Any]) -> None:
    numbers: list[Any] = []

    def fail() -> None:
        numbers.append((seen().number, seen().target, seen().is_last))
        raise TimeoutError

    policy = at_once(max_attempts=2, targets=[{"id": "a"}, {"id": "b", "max_attempts": 1}]).bind(**options)
    policy.execute(fail)
    assert numbers == [(1, "a", False), (2, "a", False), (3, "b", True)]
    at_once(max_attempts=1).bind(**options).execute(fail)
    assert numbers[-1] == (1, "primary", True)
    at_once(max_attempts_total=1, targets=[{"id": "a"}, {"id": "b"}]).bind(**options).execute(fail)
    assert numbers[-1] == (1, "a", True)


@pytest.mark.parametrize("options", [PLAIN, SLOW])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_ids_are_the_same_in_every_attempt_and_in_the_trace(options: dict[str, Any], asynchronous: bool) -> None:
    ids: list[tuple[str, str]] = []

    def fail() -> None:
        ids.append((seen().trace_id, seen().idempotency_key))
        raise TimeoutError

    async def afail() -> None:
        fail()

    bound = at_once().bind(**options)
    with pytest.raises(TimeoutError) as caught:
        asyncio.run(bound.call(afail)) if asynchronous else bound.call(fail)
    assert len(set(ids)) == 1
    from reprieve import trace_of

    trace = trace_of(caught.value)
    assert trace is not None
    assert trace.trace_id == ids[0][0]
    if options:
        assert ids[0][1] == "given"


def test_ids_asked_for_only_by_a_later_attempt_are_the_call_s() -> None:
    ids: list[str] = []

    def fail() -> None:
        if seen().number > 1:
            ids.append(seen().trace_id)
        raise TimeoutError

    with pytest.raises(TimeoutError) as caught:
        at_once().call(fail)
    assert caught.value.__notes__[0].count(ids[0]) == 1
    assert len(set(ids)) == 1


@pytest.mark.parametrize("outer", [PLAIN, SLOW])
@pytest.mark.parametrize("inner", [PLAIN, SLOW])
def test_calls_within_calls(outer: dict[str, Any], inner: dict[str, Any]) -> None:
    def inside() -> float:
        return seen().timeout

    def around() -> tuple[float, float, float]:
        before = seen()
        return before.timeout, at_once(attempt_timeout=2).bind(**inner).call(inside), seen().timeout

    assert at_once(attempt_timeout=7).bind(**outer).call(around) == (7.0, 2.0, 7.0)
    assert current_attempt() is None


@pytest.mark.parametrize("inner", [PLAIN, SLOW])
def test_a_plain_call_within_a_coroutine_is_bounded_by_it(inner: dict[str, Any]) -> None:
    async def around() -> float:
        return at_once().bind(**inner).call(lambda: seen().timeout)

    assert 400 < asyncio.run(at_once(attempt_timeout=500).call(around)) <= 500


@pytest.mark.parametrize("outer", [PLAIN, SLOW])
def test_a_coroutine_within_a_plain_call_is_bounded_by_it(outer: dict[str, Any]) -> None:
    def around() -> float:
        return asyncio.run(at_once().call(inside))

    async def inside() -> float:
        return seen().timeout

    assert 400 < at_once(attempt_timeout=500).bind(**outer).call(around) <= 500


def test_tasks_see_their_own_attempt() -> None:
    async def one(n: int) -> bool:
        mine = seen()
        await asyncio.sleep(0.001 * (n % 3))
        return seen() is mine and mine.timeout == 100 + n

    async def main() -> list[bool]:
        return await asyncio.gather(*(at_once(attempt_timeout=100 + n).call(one, n) for n in range(20)))

    assert all(asyncio.run(main()))


def test_threads_see_their_own_attempt() -> None:
    barrier = threading.Barrier(4)

    def one(n: int) -> bool:
        barrier.wait(60)
        alike = seen().timeout == 1 + n
        barrier.wait(60)
        return alike and seen().timeout == 1 + n

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda n: at_once(attempt_timeout=1 + n).call(one, n), range(4)))


def test_another_thread_sees_none_unless_it_has_the_context() -> None:
    def elsewhere(run: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(run, current_attempt).result(60)

    assert at_once().call(lambda: elsewhere(lambda f: f())) is None
    context_run = at_once().bind(**SLOW).call(lambda: elsewhere(contextvars.copy_context().run))
    assert context_run is not None


def test_an_attempt_that_has_ended_is_not_seen() -> None:
    contexts: list[contextvars.Context] = []

    async def leaves_a_task_behind(later: list[Any]) -> None:
        async def straggler() -> None:
            await asyncio.sleep(0.01)
            later.append(current_attempt())

        later.append(asyncio.create_task(straggler()))

    async def main() -> list[Any]:
        later: list[Any] = []
        await at_once().call(leaves_a_task_behind, later)
        await later[0]
        return later

    assert asyncio.run(main())[1] is None
    at_once().bind(**SLOW).call(lambda: contexts.append(contextvars.copy_context()))
    assert contexts[0].run(current_attempt) is None


def test_on_a_virtual_clock() -> None:
    with testing.virtual() as clock:

        def slow() -> float:
            clock.advance(3)
            return seen().time_left

        assert still(attempt_timeout=5).call(slow) == 2.0


def test_nothing_is_seen_after_an_exit() -> None:
    def leave() -> None:
        raise SystemExit

    for options in (PLAIN, SLOW):
        with pytest.raises(SystemExit):
            at_once().bind(**options).call(leave)
        assert current_attempt() is None
