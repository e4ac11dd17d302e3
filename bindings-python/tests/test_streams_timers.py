"""The timers of streams: the first item, idleness, silence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import jumping
import pytest
import trio
from streamed import NOW, way

import reprieve
from reprieve import (
    Policy,
    current_attempt,
    testing,
)

__all__ = ["way"]


@pytest.mark.parametrize("loop", [asyncio, trio], ids=lambda loop: loop.__name__)
@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize(
    ("stream", "before", "words"),
    [
        ({"first_item_timeout": 0.05}, 0, "no first item within 0.05 s"),
        ({"idle_timeout": 0.05}, 1, "idle for 0.05 s"),
        ({"silence_timeout": 0.05}, 0, "silent for 0.05 s"),
        ({"silence_timeout": 0.05}, 1, "silent for 0.05 s"),
    ],
)
def test_timers_cut_a_source_that_is_waited_for(
    loop: Any, buffered: bool, stream: Any, before: int, words: str
) -> None:
    async def source() -> AsyncIterator[int]:
        for n in range(before):
            yield n
        await loop.sleep(20)
        yield 9

    policy = Policy(max_attempts=1, stream={**stream, "mode": "buffered" if buffered else "before_first_item"})

    async def main() -> None:
        with pytest.raises(reprieve.AttemptTimeout, match=words) as raised:
            async for _ in policy.stream(source):
                pass
        assert raised.value.failure is not None
        assert raised.value.failure.kind == "timeout"
        assert raised.value.trace is not None
        assert raised.value.trace.delivered == ((0,) if before and not buffered else ())

    jumping.run(main, loop)


@pytest.mark.parametrize("loop", [asyncio, trio], ids=lambda loop: loop.__name__)
def test_attempt_and_total_bind_until_the_first_item_and_not_after_it(loop: Any) -> None:
    waits = [20.0, 0.0]

    async def source() -> AsyncIterator[int]:
        await loop.sleep(waits.pop(0))
        yield 1
        await loop.sleep(1.1)
        attempt = current_attempt()
        assert attempt is not None
        assert attempt.time_left > 1_000
        yield 2

    policy = NOW.replace(attempt_timeout=0.3, total_timeout=1)

    async def main() -> None:
        assert [item async for item in policy.stream(source)] == [1, 2]

    jumping.run(main, loop)


@pytest.mark.parametrize("loop", [asyncio, trio], ids=lambda loop: loop.__name__)
def test_a_slow_consumer_trips_nothing(loop: Any) -> None:
    async def source() -> AsyncIterator[int]:
        for n in range(3):
            await loop.sleep(0.01)
            yield n

    policy = NOW.replace(stream={"idle_timeout": 0.4, "silence_timeout": 0.4, "first_item_timeout": 5})

    async def main() -> None:
        got = []
        async for item in policy.stream(source):
            got.append(item)
            await loop.sleep(0.5)
        assert got == [0, 1, 2]

    jumping.run(main, loop)


@pytest.mark.parametrize("loop", [asyncio, trio], ids=lambda loop: loop.__name__)
def test_what_is_heard_is_no_silence_and_no_data(loop: Any) -> None:
    async def source() -> AsyncIterator[int]:
        attempt = current_attempt()
        assert attempt is not None
        yield 1
        for _ in range(6):
            await loop.sleep(0.1)
            attempt.heard()
        yield 2
        for _ in range(50):
            await loop.sleep(0.1)
            attempt.heard()

    policy = Policy(max_attempts=1, stream={"silence_timeout": 0.4, "idle_timeout": 0.8})

    got: list[int] = []

    async def main() -> None:
        async for item in policy.stream(source):
            got.append(item)

    with pytest.raises(reprieve.AttemptTimeout, match="idle for"):
        jumping.run(main, loop)
    assert got == [1, 2]


def test_pings_are_no_data() -> None:
    policy = Policy(max_attempts=1, stream={"idle_timeout": 1})
    with testing.virtual() as clock:

        def source() -> Iterator[Any]:
            yield "a"
            while True:
                clock.advance(0.4)
                yield {"type": "ping"}

        def consume() -> None:
            for item in policy.stream(source):
                got.append(item)
                clock.advance(5)  # the consumer's own time

        got: list[Any] = []
        with pytest.raises(reprieve.AttemptTimeout, match="idle for 1 s"):
            consume()
    assert got == ["a", {"type": "ping"}, {"type": "ping"}]


def test_a_transport_hears_of_a_timer_that_has_run_out() -> None:
    policy = Policy(max_attempts=1, stream={"first_item_timeout": 1})
    with testing.virtual() as clock:

        def source() -> Iterator[Any]:
            attempt = current_attempt()
            assert attempt is not None
            assert attempt.timeout == 1.0
            for _ in range(5):
                clock.advance(0.4)
                attempt.heard()
            yield "late"

        with pytest.raises(reprieve.AttemptTimeout, match="no first item within 1 s"):
            [*policy.stream(source)]


def test_a_plain_source_that_is_late_is_late_and_no_failure() -> None:
    with testing.virtual() as clock:

        def source() -> Iterator[str]:
            clock.advance(100)
            yield "late"

        assert [*Policy(attempt_timeout=1).stream(source)] == ["late"]
