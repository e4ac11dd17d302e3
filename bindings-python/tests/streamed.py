"""Sources that play a script, and every way to consume a stream: what the tests of streams share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import trio

from reprieve import (
    Policy,
    current_attempt,
)

NOW = Policy(backoff={"base": 0, "max": 0}, jitter={"kind": "none"})


class Script:
    """A source that plays its parts, one for each attempt: items, and exceptions to raise in their place."""

    def __init__(self, *parts: Any) -> None:
        self.parts, self.played, self.closed = parts, 0, 0
        self.seen: list[Any] = []

    def _next(self) -> list[Any]:
        self.played += 1
        return list(self.parts[min(self.played, len(self.parts)) - 1])

    def plain(self) -> Iterator[Any]:
        attempt = current_attempt()
        assert attempt is not None
        self.seen.append((attempt.number, attempt.delivered))
        try:
            for item in self._next():
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, type):
                    raise item
                yield item
        finally:
            self.closed += 1

    async def coro(self) -> AsyncIterator[Any]:
        attempt = current_attempt()
        assert attempt is not None
        self.seen.append((attempt.number, attempt.delivered))
        try:
            for item in self._next():
                await checkpoint()
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, type):
                    raise item
                yield item
        finally:
            await checkpoint()
            self.closed += 1


async def checkpoint() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        await trio.lowlevel.checkpoint()
    else:
        await asyncio.sleep(0)


class Way:
    """How a script is streamed and consumed."""

    def __init__(self, name: str, run: Callable[[Any], Any] | None) -> None:
        self.name, self.run = name, run

    def stream(self, policy: Any, script: Script) -> Any:
        return policy.stream(script.coro if self.run else script.plain)

    def take(self, stream: Any, most: int = 1_000) -> list[Any]:
        """The items, or so many; what it raises, it raises."""
        got: list[Any] = []
        if self.run is None:
            for item in stream:
                got.append(item)
                if len(got) == most:
                    break
            stream.close()
            return got

        async def take() -> None:
            async with stream:
                async for item in stream:
                    got.append(item)
                    if len(got) == most:
                        break

        self.run(take)
        return got


WAYS = [
    Way("for", None),
    Way("asyncio", lambda function: asyncio.run(function())),
    Way("trio", trio.run),
]


@pytest.fixture(params=WAYS, ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.param
    return found


def receipts(stream: Any) -> list[tuple[str, int]]:
    return [(receipt["kind"] or receipt["outcome"], receipt["delivered"]) for receipt in stream.trace.receipts]


# --- events of providers ---

CHUNK = {"object": "chat.completion.chunk", "id": "c", "choices": [{"index": 0, "delta": {"content": "a"}}]}
ROLE = {**CHUNK, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
STOP = {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
FILTERED = {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]}
USAGE = {**CHUNK, "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
ERROR = {"error": {"type": "overloaded_error", "message": "Overloaded"}}
START = {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}}
DELTA = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}
FINISH = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
END = {"type": "message_stop"}
