"""Streams within attempts, and attempts within streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from streamed import NOW, Script, Way, checkpoint, way

from reprieve import (
    Policy,
    current_attempt,
    testing,
)

__all__ = ["way"]


def test_the_attempt_is_visible_to_the_source_alone(way: Way) -> None:
    def look() -> int | None:
        attempt = current_attempt()
        return attempt.number if attempt else None

    inside: list[int | None] = []

    def plain() -> Iterator[int | None]:
        for _ in range(3):
            inside.append(look())
            yield look()
        inside.append(look())

    async def coro() -> AsyncIterator[int | None]:
        for item in plain():
            await checkpoint()
            yield item

    outside: list[int | None] = []

    async def take() -> None:
        async for _ in NOW.stream(coro):
            outside.append(look())
        outside.append(look())

    if way.run is None:
        for _ in NOW.stream(plain):
            outside.append(look())
        outside.append(look())
    else:
        way.run(take)
    assert (inside, outside) == ([1] * 4, [None] * 4)


def test_a_call_inside_of_a_stream_adds_and_never_multiplies() -> None:
    calls = [0]

    @NOW
    def ask() -> str:
        calls[0] += 1
        raise ConnectionError

    def source() -> Iterator[str]:
        yield ask()

    stream = NOW.stream(source)
    with pytest.raises(ConnectionError):
        list(stream)
    assert calls == [3]
    assert stream.trace is not None
    assert len(stream.trace.receipts) == 1


def test_a_stream_inside_of_a_call_is_bounded_by_it() -> None:
    seen: list[float] = []

    def source() -> Iterator[str]:
        attempt = current_attempt()
        assert attempt is not None
        seen.append(attempt.timeout)
        yield "a"

    with testing.virtual():

        @Policy(attempt_timeout=5)
        def ask() -> list[str]:
            stream = Policy().stream(source)
            got = [*stream]
            assert stream.trace is not None
            assert stream.trace.receipts[0]["outer_trace_id"]
            return got

        assert ask() == ["a"]
    assert seen == [5.0]


def test_a_stream_inside_of_a_stream() -> None:
    inner, outer = Script(["a", ConnectionError()]), [0]

    def source() -> Iterator[str]:
        outer[0] += 1
        yield from NOW.replace(stream={"mode": "buffered"}).stream(inner.plain)

    with pytest.raises(ConnectionError):
        [*NOW.stream(source)]
    assert (inner.played, outer) == (3, [1])
