"""What the function of a stream may answer, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from openai.types.chat import ChatCompletion
from streamed import NOW, WAYS, Script, Way, way

from reprieve import (
    AsyncStream,
    Stream,
)

__all__ = ["way"]


def test_plain_functions_may_answer_anything_that_is_iterated() -> None:
    closed: list[str] = []

    class Client:
        """As clients' stream objects are: an iterator that is also closed."""

        def __init__(self) -> None:
            self.items = iter("ab")

        def __iter__(self) -> Iterator[str]:
            return self.items

        def __next__(self) -> str:
            return next(self.items)

        def close(self) -> None:
            closed.append("client")

    @contextmanager
    def manager() -> Iterator[Client]:
        try:
            yield Client()
        finally:
            closed.append("manager")

    @contextmanager
    def of_list() -> Iterator[list[str]]:
        yield ["a", "b"]

    answers: list[Callable[[], Any]] = [lambda: ["a", "b"], lambda: iter("ab"), Client, manager, of_list]
    for answer in answers:
        stream = NOW.stream(answer)
        assert isinstance(stream, Stream)
        assert [*stream] == ["a", "b"]
    assert closed == ["client", "client", "manager"]


@pytest.mark.parametrize("run", [way.run for way in WAYS if way.run])
def test_async_functions_may_answer_anything_that_is_iterated(run: Any) -> None:
    closed: list[str] = []

    async def generator() -> AsyncIterator[str]:
        for item in "ab":
            yield item

    async def coroutine() -> AsyncIterator[str]:
        return generator()

    class Client:
        def __init__(self) -> None:
            self.items = iter("ab")

        def __aiter__(self) -> AsyncIterator[str]:
            return generator()

        async def __anext__(self) -> str:
            for item in self.items:
                return item
            raise StopAsyncIteration

        async def close(self) -> None:
            closed.append("client")

    @asynccontextmanager
    async def manager() -> AsyncIterator[Client]:
        try:
            yield Client()
        finally:
            closed.append("manager")

    async def plain() -> list[str]:
        return ["a", "b"]

    def hidden() -> Awaitable[AsyncIterator[str]]:
        return coroutine()

    async def main() -> None:
        for answer in (generator, coroutine, Client, manager, plain, hidden):
            stream: Any = NOW.stream(answer)
            assert isinstance(stream, AsyncStream)
            assert [item async for item in stream] == ["a", "b"]

    run(main)
    assert closed == ["client", "client", "manager"]


def test_what_cannot_be_iterated_is_named() -> None:
    with pytest.raises(TypeError, match="answered a int"):
        [*NOW.stream(int)]
    for whole in (str, dict, ChatCompletion.model_construct):
        with pytest.raises(TypeError, match="stream=True"):
            [*NOW.stream(whole)]

    async def coroutine() -> None: ...

    with pytest.raises(TypeError, match="use `async for`"):
        [*NOW.stream(lambda: coroutine())]


def test_who_has_both_faces_is_taken_by_the_one_that_is_asked_for(way: Way) -> None:
    script = Script(["a", "b"])
    source: Any = script.coro if way.run else script.plain
    inner = NOW.stream(lambda: source())
    assert way.take(NOW.stream(lambda: inner)) == ["a", "b"]


def test_a_decorated_generator_is_a_stream() -> None:
    script = Script([ConnectionError()], ["a"])

    class Client:
        @NOW
        def words(self, first: str) -> Iterator[str]:
            """Some words."""
            yield first
            yield from script.plain()

    assert Client.words.__doc__ == "Some words."
    script.played = 1
    assert [*Client().words("b")] == ["b", "a"]
