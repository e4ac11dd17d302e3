"""What a wrapped client adds to each chunk of a stream: the client itself beside the wrapped one, against the gateway.

The two take turns, stream by stream, and the middle one of each counts: what slows the machine down for a while slows
down both. Time is the processor's, of this thread alone. Writes `target/bench/clients.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
import openai

import reprieve

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "bindings-python" / "tests"))
from at_gateway import gateway  # noqa: E402

CHUNKS = (1_000, 20_000)
#: So often the longest stream is asked for; a shorter one more often, for the same number of chunks.
ROUNDS = 5
#: But no more often than this.
MOST = 50

LOOP = asyncio.new_event_loop()
CLIENTS: dict[str, tuple[Any, Any, str]] = {
    "openai": (openai.OpenAI, openai.AsyncOpenAI, "/v1"),
    "anthropic": (anthropic.Anthropic, anthropic.AsyncAnthropic, ""),
}


class Way(NamedTuple):
    """How a stream is asked for."""

    sdk: str
    ask: Callable[[Any, str], Any]


WAYS = {
    "openai chat": Way(
        "openai",
        lambda client, text: client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": text}], stream=True
        ),
    ),
    "openai responses": Way("openai", lambda client, text: client.responses.create(model="m", input=text, stream=True)),
    "anthropic": Way(
        "anthropic",
        lambda client, text: client.messages.create(
            model="m", max_tokens=99, messages=[{"role": "user", "content": text}], stream=True
        ),
    ),
}


class Cost(NamedTuple):
    """Of one chunk, in microseconds."""

    bare: float
    wrapped: float

    @property
    def added(self) -> float:
        return self.wrapped - self.bare


def consume(stream: Any) -> int:
    count = 0
    for _ in stream:
        count += 1
    return count


async def aconsume(opening: Any) -> int:
    count = 0
    async for _ in await opening:
        count += 1
    return count


def timed(run: Callable[[], int]) -> float:
    """Microseconds for each chunk."""
    began = time.thread_time_ns()
    count = run()
    return (time.thread_time_ns() - began) / count / 1_000


def measure(way: Way, chunks: int, rounds: int, contenders: tuple[Any, Any], *, awaits: bool) -> Cost:
    text = f"#[sse-whole={chunks}]"

    def once(client: Any) -> float:
        if not awaits:
            return timed(lambda: consume(way.ask(client, text)))
        return timed(lambda: LOOP.run_until_complete(aconsume(way.ask(client, text))))

    for client in contenders:  # what is made on first use
        once(client)
    times = min(MOST, rounds * max(CHUNKS) // chunks)
    found = [Cost(*map(once, contenders)) for _ in range(times)]
    return Cost(statistics.median(cost.bare for cost in found), statistics.median(cost.wrapped for cost in found))


def all_of(origin: str, rounds: int, names: list[str], lengths: list[int]) -> dict[str, Cost]:
    found: dict[str, Cost] = {}
    for name in names:
        way = WAYS[name]
        plain, awaited, path = CLIENTS[way.sdk]
        for awaits, make in ((False, plain), (True, awaited)):
            bare = make(api_key="k", base_url=origin + path)
            both = (bare, reprieve.wrap(bare, reprieve.Policy()))
            for chunks in lengths:
                label = f"{name}, {'async' if awaits else 'sync'}, {chunks:,}"
                found[label] = measure(way, chunks, rounds, both, awaits=awaits)
                show(label, found[label])
    return found


def show(label: str, cost: Cost) -> None:
    ratio = cost.wrapped / cost.bare
    print(f"{label:<32}{cost.bare:>8.1f}{cost.wrapped:>10.1f}{cost.added:>8.1f}   x{ratio:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--chunks", nargs="*", type=int, default=list(CHUNKS))
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "bench" / "clients.json")
    options = parser.parse_args()
    print(f"{'us for each chunk':<32}{'bare':>8}{'wrapped':>10}{'added':>8}")
    with gateway() as origin:
        found = all_of(origin, options.rounds, options.ways, options.chunks)
    LOOP.run_until_complete(LOOP.shutdown_asyncgens())  # the SDKs leave some of theirs to the loop
    LOOP.close()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figures = {label: cost._asdict() for label, cost in found.items()}
    options.out.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
