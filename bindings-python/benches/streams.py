"""What a policy adds to each chunk of a stream: a bare loop beside ours, for `for` and `async for`.

Every round times each contender once, in turn; the best round counts. Chunks are texts, dicts and the objects of a real
client; async chunks are there at once, which is the worst case for what is added. Writes `target/bench/streams.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from openai.types.chat import ChatCompletionChunk

from reprieve import Policy

ROUNDS = 15
CHUNKS = 20_000

EVENT: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "delta": {"content": "word"}, "finish_reason": None}],
}
END = {**EVENT, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
KINDS: dict[str, tuple[Any, Any]] = {
    "text": ("word", "word"),
    "dict": (EVENT, END),
    "openai": (ChatCompletionChunk.model_validate(EVENT), ChatCompletionChunk.model_validate(END)),
}
PLAIN = Policy()
TIMED = Policy(stream={"idle_timeout": 15, "silence_timeout": 60})


def source(kind: str) -> Iterator[Any]:
    chunk, end = KINDS[kind]
    for _ in range(CHUNKS - 1):
        yield chunk
    yield end


async def asource(kind: str) -> AsyncIterator[Any]:
    chunk, end = KINDS[kind]
    for _ in range(CHUNKS - 1):
        yield chunk
    yield end


def consume(items: Iterator[Any]) -> int:
    count = 0
    for _ in items:
        count += 1
    return count


async def aconsume(items: AsyncIterator[Any]) -> int:
    count = 0
    async for _ in items:
        count += 1
    return count


def contenders(kind: str) -> dict[str, Callable[[], int]]:
    return {
        "for, bare": lambda: consume(source(kind)),
        "for, ours": lambda: consume(iter(PLAIN.stream(source, kind))),
        "for, ours with timers": lambda: consume(iter(TIMED.stream(source, kind))),
        "async for, bare": lambda: asyncio.run(aconsume(asource(kind))),
        "async for, ours": lambda: asyncio.run(aconsume(aiter(PLAIN.stream(asource, kind)))),
        "async for, ours with timers": lambda: asyncio.run(aconsume(aiter(TIMED.stream(asource, kind)))),
    }


def measure(kind: str, rounds: int) -> dict[str, float]:
    """Nanoseconds for each chunk."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, run in contenders(kind).items():
            began = time.thread_time_ns()
            count = run()
            each = (time.thread_time_ns() - began) / CHUNKS
            assert count == CHUNKS
            best[name] = min(best.get(name, each), each)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "target" / "bench" / "streams.json")
    options = parser.parse_args()
    found = {kind: measure(kind, options.rounds) for kind in KINDS}
    print(f"{'ns for each chunk':<28}" + "".join(f"{kind:>10}" for kind in KINDS) + "      added (text)")
    for name in contenders("text"):
        bare = f"{name.split(',')[0]}, bare"
        added = found["text"][name] - found["text"][bare]
        ratio = found["text"][name] / found["text"][bare]
        figures = "".join(f"{found[kind][name]:>10.0f}" for kind in KINDS)
        print(f"{name:<28}{figures}{added:>14.0f} ns, x{ratio:.1f}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
