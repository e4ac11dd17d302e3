"""Calls of coroutines that take too long: an attempt is cut, awaited until it has unwound, and may still be late."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import jumping
import pytest
import trio
from backends import LONG, PROMPT, _no_never_awaited, each_backend, each_option, run, sleep
from failing import at_once

from reprieve import AttemptTimeout, current_attempt

__all__ = ["_no_never_awaited"]
pytestmark = [pytest.mark.filterwarnings("error")]


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
