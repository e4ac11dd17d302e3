"""What hedging does to the slowest answers: one in twenty is slow, with the `openai` client against the fault gateway.

    python tests/drill/python/hedge.py [--gateway FILE] [--calls N]

Prints a table: the requests that the gateway counted, and how long callers waited for an answer, or for the first item
of a stream, without and with `hedge`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import openai
from places import Gateway

from reprieve import Policy, Trace, current_attempt

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parents[2] / "target")
#: How long an answer takes, and one in twenty; in milliseconds.
USUAL, SLOW, EVERY = 150, 1_500, 20
MARKER = f"#[{f'slow={USUAL},' * (EVERY - 1)}slow={SLOW},again]"
#: When an answer is late: later than nearly all of the usual ones.
AFTER = "190ms"
#: How many callers there are at once.
CALLERS = 12


@dataclass(frozen=True)
class Seen:
    """What came of a number of calls."""

    traces: list[Trace]
    #: How long each caller waited, in milliseconds.
    waited: list[float]
    #: The requests that the gateway counted.
    requests: int

    @property
    def hedges(self) -> int:
        """The attempts that joined another one."""
        return sum(len(trace.receipts) - 1 for trace in self.traces)

    @property
    def won(self) -> int:
        """The hedges that were first."""
        ends = (trace.receipts[-1] for trace in self.traces if len(trace.receipts) > 1)
        return sum(end["attempt"] > 1 for end in ends)


class Marked(NamedTuple):
    """A call, as the gateway knows it."""

    drill: str
    #: What its first request meets, and what those meet that join it.
    first: str
    hedge: str


#: Makes a request: for a stream, or not.
Create = Callable[[bool], Coroutine[Any, Any, Any]]
Waits = Callable[[Policy, Create], Awaitable[tuple[float, Trace]]]


async def answer(policy: Policy, create: Create) -> tuple[float, Trace]:
    """Waits for an answer: until when, and the call's records."""
    result = await policy.execute(create, False)
    return time.perf_counter(), result.trace


async def first_item(policy: Policy, create: Create) -> tuple[float, Trace]:
    """Waits for the first item of a stream, and takes the rest."""
    async with policy.stream(create, True) as stream:
        await anext(stream)
        came = time.perf_counter()
        async for _ in stream:
            pass
    assert stream.trace is not None
    return came, stream.trace


#: What callers wait for.
WAITS: dict[str, Waits] = {"an answer": answer, "a first item": first_item}
#: Without hedging, and with it.
POLICIES = {"no": Policy(), "yes": Policy(hedge={"after": AFTER})}


async def ask(gateway: Gateway, policy: Policy, waits: Waits, calls: Sequence[Marked]) -> Seen:
    """Makes the calls, some at once."""
    traces: list[Trace] = []
    waited: list[float] = []
    left = iter(calls)
    client = openai.AsyncOpenAI(api_key="none", base_url=f"{gateway.url}/v1", max_retries=0)

    async def create(call: Marked, stream: bool) -> Any:
        attempt = current_attempt()
        marker = call.first if attempt is None or attempt.number == 1 else call.hedge
        return await client.chat.completions.create(
            model="gpt-test",
            messages=[{"role": "user", "content": f"Say hello. {marker}"}],
            stream=stream,
            extra_headers={"x-drill-id": call.drill},
        )

    async def caller() -> None:
        for call in left:
            began = time.perf_counter()
            came, trace = await waits(policy, partial(create, call))
            waited.append((came - began) * 1e3)
            traces.append(trace)

    async with client:
        await asyncio.gather(*(caller() for _ in range(CALLERS)))
    counts = gateway.counts()
    return Seen(traces, waited, sum(counts[drill] for drill in {call.drill for call in calls}))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def compare(gateway: Gateway, calls: int) -> dict[tuple[str, str], Seen]:
    """The same calls without hedging and with it, for each of what callers wait for.

    Which requests are slow is counted over all calls of one drill: a hedge may be slow as well.
    """
    return {
        (what, hedged): asyncio.run(
            ask(gateway, policy, waits, [Marked(f"{what}, {hedged}".replace(" ", "-"), MARKER, MARKER)] * calls)
        )
        for what, waits in WAITS.items()
        for hedged, policy in POLICIES.items()
    }


def table(seen: dict[tuple[str, str], Seen], calls: int) -> str:
    """The comparison, for people."""
    rows = [f"{'waits for':12} {'hedged':>6} {'requests':>8} {'more':>6} {'median':>8} {'P95':>8} {'P99':>8}"]
    for (what, hedged), one in seen.items():
        more = 100 * (one.requests - calls) / calls
        times = " ".join(f"{percentile(one.waited, share):5.0f} ms" for share in (0.5, 0.95, 0.99))
        rows.append(f"{what:12} {hedged:>6} {one.requests:8} {more:5.1f}% {times}")
    hedges, won = (sum(getattr(one, name) for one in seen.values()) for name in ("hedges", "won"))
    rows.append(f"{hedges} attempts were joined by another after {AFTER}; {won} of those were first")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--gateway",
        type=Path,
        default=TARGET / "release" / "gateway",
        help="the gateway's binary",
    )
    parser.add_argument("--calls", type=int, default=400, help="how many calls are made, four times")
    options = parser.parse_args()
    with Gateway(options.gateway) as gateway:
        seen = compare(gateway, options.calls)
    print(f"{options.calls} calls; an answer takes {USUAL} ms, and one in {EVERY} takes {SLOW} ms")
    print(table(seen, options.calls))


if __name__ == "__main__":
    main()
