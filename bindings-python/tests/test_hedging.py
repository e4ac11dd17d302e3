"""Attempts beside each other: what joins, who wins, and what is made of failures and timeouts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from hedged import SOON, USER, Slow, hedging, run, shown

from reprieve import AttemptTimeout, current_attempt

pytestmark = [pytest.mark.filterwarnings("error")]


def test_the_hedge_wins_and_the_slow_one_has_unwound() -> None:
    slow = Slow({2: "fast"})

    async def main() -> Any:
        result = await hedging().execute(slow)
        assert slow.left == {1: "cancelled", 2: "answered"}
        return result

    result = run(main)
    assert (result.value, result.attempts) == ("fast", 2)
    assert shown(result) == [(1, "cancelled", "superseded"), (2, "success", "done")]


def test_the_first_one_may_still_win() -> None:
    async def main() -> Any:
        slow = Slow()

        async def once_joined() -> str:
            await slow.attempts(2)
            return "first"

        slow.ends[1] = once_joined
        result = await hedging().execute(slow)
        assert slow.left == {1: "answered", 2: "cancelled"}
        return result

    result = run(main)
    assert result.value == "first"
    assert shown(result) == [(2, "cancelled", "superseded"), (1, "success", "done")]


def test_what_is_fast_is_sent_once() -> None:
    async def main() -> Any:
        slow = Slow({1: "fast"})
        assert await hedging(after=30).call(slow) == "fast"
        assert slow.started == [1]

    run(main)


def test_no_more_than_max_join() -> None:
    async def main() -> Any:
        slow = Slow({3: asyncio.sleep})  # a TypeError: `sleep` wants to know how long

        async def later() -> str:
            await asyncio.sleep(10 * SOON)
            return "late"

        slow.ends[3] = later
        assert await hedging(most=2).call(slow) == "late"
        assert slow.started == [1, 2, 3]
        assert slow.left == {1: "cancelled", 2: "cancelled", 3: "answered"}

    run(main)


@pytest.mark.parametrize("way", ["call", "decorated", "start", "answered", "bound"])
def test_every_way_to_call_a_coroutine_function(way: str) -> None:
    async def main() -> Any:
        slow, policy = Slow({2: "fast"}), hedging()

        async def function() -> Any:
            return await slow()

        made: Awaitable[Any]
        match way:
            case "call":
                made = policy.call(function)
            case "decorated":
                made = policy(function)()
            case "start":
                made = policy.start(function)
            case "answered":  # as the methods of async clients do
                made = policy.call(lambda: function())
            case _:
                made = policy.bind(scene="s").call(function)
        assert await made == "fast"
        assert slow.started == [1, 2]
        assert slow.left == {1: "cancelled", 2: "answered"}

    run(main)


def test_each_has_a_context_of_its_own() -> None:
    seen: list[str] = []

    async def main() -> Any:
        USER.set("caller")
        slow = Slow({2: "fast"})

        async def function() -> Any:
            seen.append(USER.get())
            USER.set(f"attempt {len(seen)}")
            return await slow()

        assert await hedging().call(function) == "fast"
        assert USER.get() == "caller"
        assert current_attempt() is None

    run(main)
    assert seen == ["caller", "caller"]


def test_a_failure_waits_for_its_sibling() -> None:
    async def main() -> Any:
        slow = Slow({2: ConnectionError("second")})

        async def after_the_failure() -> str:
            await slow.attempts(2)
            await asyncio.sleep(SOON)
            return "first"

        slow.ends[1] = after_the_failure
        return await hedging().execute(slow)

    result = run(main)
    assert result.value == "first"
    assert shown(result) == [(2, "failure", "pending"), (1, "success", "done")]


def test_the_last_failure_is_raised_as_it_is() -> None:
    errors = {1: TimeoutError("first"), 2: ConnectionError("second")}

    async def main() -> Any:
        slow = Slow({2: errors[2]})

        async def last() -> Any:
            await slow.attempts(2)
            await asyncio.sleep(SOON)
            return errors[1]

        slow.ends[1] = last
        await hedging(max_attempts=1).call(slow)

    with pytest.raises(TimeoutError) as caught:
        run(main)
    assert caught.value is errors[1]
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert shown(caught.value) == [(2, "failure", "pending"), (1, "failure", "stop")]


def test_every_attempt_has_its_own_timeout() -> None:
    async def main() -> Any:
        slow = Slow({3: "third"})
        result = await hedging(attempt_timeout=4 * SOON, max_attempts=2).execute(slow)
        assert slow.left == {1: "cancelled", 2: "cancelled", 3: "answered"}
        return result

    result = run(main)
    assert result.value == "third"
    assert shown(result) == [(1, "failure", "pending"), (2, "failure", "retry"), (3, "success", "done")]


def test_two_timeouts_are_one_timeout() -> None:
    async def main() -> Any:
        await hedging(attempt_timeout=3 * SOON, max_attempts=1).call(Slow())

    with pytest.raises(AttemptTimeout, match="attempt 2 took longer") as caught:
        run(main)
    assert caught.value.attempts == 2


def test_the_hedge_calls_the_function_of_its_target() -> None:
    async def main() -> Any:
        slow, other = Slow({3: "backup"}), Slow({1: ConnectionError("primary")})
        policy = hedging(max_attempts=1, targets=[{"id": "primary"}, {"id": "backup"}])

        async def backup() -> Any:
            return await slow()

        assert await policy.bind(targets={"backup": backup}).call(other) == "backup"
        assert (other.started, slow.started) == ([1], [2, 3])

    run(main)
