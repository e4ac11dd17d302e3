"""What hedging does to the slowest answers: one in twenty is slow, with the `openai` client against the fault gateway.

    python tests/drill/python/hedge.py [--gateway FILE] [--calls N]

Prints a table: the requests that the gateway counted and how long the callers waited, without and with `hedge`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
from places import Gateway

from reprieve import Policy, Result

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parents[2] / "target")
#: How long an answer takes, and one in twenty; in milliseconds.
USUAL, SLOW, EVERY = 60, 1_000, 20
MARKER = f"#[{f'slow={USUAL},' * (EVERY - 1)}slow={SLOW},again]"
#: When an answer is late: later than nearly all of the usual ones.
AFTER = "130ms"
#: How many callers there are at once.
CALLERS = 8


@dataclass(frozen=True)
class Seen:
    """What came of a number of calls."""

    results: list[Result[Any]]
    #: How long each took for its caller, in milliseconds.
    waited: list[float]
    #: The requests that the gateway counted.
    requests: int

    @property
    def hedges(self) -> int:
        """The attempts that joined another one."""
        return sum(result.attempts - 1 for result in self.results)

    @property
    def won(self) -> int:
        """The hedges that answered first."""
        ends = (result.trace.receipts[-1] for result in self.results if result.attempts > 1)
        return sum(end["attempt"] > 1 for end in ends)


async def ask(gateway: Gateway, policy: Policy, drill: str, calls: int) -> Seen:
    """Makes the calls, some at once."""
    results: list[Result[Any]] = []
    waited: list[float] = []
    left = iter(range(calls))
    client = openai.AsyncOpenAI(api_key="none", base_url=f"{gateway.url}/v1", max_retries=0)

    async def create() -> Any:
        return await client.chat.completions.create(
            model="gpt-test",
            messages=[{"role": "user", "content": f"Say hello. {MARKER}"}],
            extra_headers={"x-drill-id": drill},
        )

    async def caller() -> None:
        for _ in left:
            began = time.perf_counter()
            result = await policy.execute(create)
            waited.append((time.perf_counter() - began) * 1e3)
            results.append(result)

    async with client:
        await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return Seen(results, waited, gateway.counts()[drill])


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def compare(gateway: Gateway, calls: int) -> dict[str, Seen]:
    """The same calls twice: without hedging, and with it."""
    policies = {"without": Policy(), "with": Policy(hedge={"after": AFTER})}
    return {name: asyncio.run(ask(gateway, policy, name, calls)) for name, policy in policies.items()}


def table(seen: dict[str, Seen], calls: int) -> str:
    """The comparison, for people."""
    rows = [f"{'hedging':8} {'requests':>8} {'more':>6} {'median':>8} {'P95':>8} {'P99':>8}"]
    for name, one in seen.items():
        more = 100 * (one.requests - calls) / calls
        times = " ".join(f"{percentile(one.waited, share):5.0f} ms" for share in (0.5, 0.95, 0.99))
        rows.append(f"{name:8} {one.requests:8} {more:5.1f}% {times}")
    hedged = seen["with"]
    rows.append(f"{hedged.hedges} attempts were joined by another after {AFTER}; {hedged.won} of those were first")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--gateway",
        type=Path,
        default=TARGET / "release" / "gateway",
        help="the gateway's binary",
    )
    parser.add_argument("--calls", type=int, default=400, help="how many calls are made, twice")
    options = parser.parse_args()
    with Gateway(options.gateway) as gateway:
        seen = compare(gateway, options.calls)
    print(f"{options.calls} calls; an answer takes {USUAL} ms, and one in {EVERY} takes {SLOW} ms")
    print(table(seen, options.calls))


if __name__ == "__main__":
    main()
