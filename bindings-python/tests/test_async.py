"""Calls of coroutines, under asyncio and trio: attempts, values, contexts, many at once, and nothing left behind."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from typing import Any
from unittest.mock import AsyncMock

import pytest
import trio
from backends import LONG, _no_never_awaited, each_backend, each_option, run
from failing import Script, at_once, fails, still

from reprieve import AttemptTimeout, testing, trace_of

__all__ = ["_no_never_awaited"]
pytestmark = [pytest.mark.filterwarnings("error")]


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
