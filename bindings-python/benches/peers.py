"""Ours beside the peers, side by side in one run: what a retry costs when nothing, or one thing, goes wrong.

Every round times each contender once, in turn, so that a noisy moment hits all of them; the best round of each counts.
Ratios are of overhead: the time above the bare function. Writes `target/bench/python.json`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextvars
import functools
import json
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import backoff
import hyx.retry
import redress
import stamina
import tenacity

import reprieve

ROUNDS = 15
Bench = dict[str, Callable[[], Any]]


def plain() -> int:
    return 1


async def aplain() -> int:
    return 1


def fails_every_other_time() -> Callable[[], int]:
    calls = 0

    def flaky() -> int:
        nonlocal calls
        calls += 1
        if calls % 2:
            raise TimeoutError
        return 1

    return flaky


def hand_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """What people write: a loop around a `try`, for any function."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for attempt in range(3):
            try:
                return function(*args, **kwargs)
            except Exception:
                if attempt == 2:
                    raise
                time.sleep(0)
        return None

    return call


ATTEMPT: contextvars.ContextVar[int] = contextvars.ContextVar("attempt")


def hand_loop_async(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The same promises as ours: a bound in time, and the attempt visible to the function."""

    @functools.wraps(function)
    async def call(*args: Any, **kwargs: Any) -> Any:
        for attempt in range(3):
            token = ATTEMPT.set(attempt)
            try:
                async with asyncio.timeout(600):
                    return await function(*args, **kwargs)
            except Exception:
                if attempt == 2:
                    raise
                await asyncio.sleep(0)
            finally:
                ATTEMPT.reset(token)
        return None

    return call


def bare_loop(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A loop that promises nothing."""

    async def call() -> Any:
        for attempt in range(3):
            try:
                return await function()
            except Exception:
                if attempt == 2:
                    raise
        return None

    return call


NOW = {"kind": "constant", "base": 0}


def peers(function: Callable[..., Any]) -> Bench:
    """The same function under every library: three attempts, no waiting."""
    bench: Bench = {
        "reprieve": reprieve.Policy(backoff=NOW)(function),
        "tenacity": tenacity.retry(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_none())(function),
        "stamina": stamina.retry(on=Exception, attempts=3, wait_initial=0, wait_max=0, wait_jitter=0)(function),
        "backoff": backoff.on_exception(backoff.constant, Exception, max_tries=3, interval=0, jitter=None)(function),
        "redress": redress.retry(max_attempts=3, strategy=lambda context: 0.0)(function),
    }
    if asyncio.iscoroutinefunction(function):
        bench["hyx"] = hyx.retry.retry(attempts=3, backoff=0)(function)  # for coroutines only
    return bench


def time_sync(function: Callable[[], Any], budget: float) -> float:
    number = 1
    while (elapsed := _loop(function, number)) < budget:
        number = max(number * 2, int(number * budget / max(elapsed, 1e-7)))
    return elapsed / number * 1e9


def _loop(function: Callable[[], Any], number: int) -> float:
    repeat = range(number)
    start = time.perf_counter()
    for _ in repeat:
        function()
    return time.perf_counter() - start


def time_async(function: Callable[[], Awaitable[Any]], budget: float) -> float:
    async def loop(number: int) -> float:
        start = time.perf_counter()
        for _ in range(number):
            await function()
        return time.perf_counter() - start

    async def measure() -> float:
        number = 1
        while (elapsed := await loop(number)) < budget:
            number = max(number * 2, int(number * budget / max(elapsed, 1e-7)))
        return elapsed / number * 1e9

    return asyncio.run(measure())


def measure(contenders: Bench, timer: Callable[[Any, float], float], rounds: int, budget: float) -> dict[str, float]:
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, function in contenders.items():
            took = timer(function, budget)
            best[name] = min(best.get(name, took), took)
    return best


def table(title: str, best: dict[str, float], base: float) -> list[dict[str, Any]]:
    """Prints a table, and answers its rows for the file."""
    ours = best["reprieve"]
    print(f"\n{title}\n  {'':<14}{'ns a call':>12}{'overhead':>12}{'x ours':>10}")
    rows = []
    for name, took in sorted(best.items(), key=lambda item: item[1]):
        ratio = (took - base) / max(ours - base, 1e-9)
        print(f"  {name:<14}{took:>12,.0f}{took - base:>12,.0f}{ratio:>10.2f}{'  <' if name == 'reprieve' else ''}")
        if name not in ("reprieve", "plain"):
            rows.append(
                {"name": title, "ours_ns": ours, "peer": name, "peer_ns": took, "bare_ns": base, "ratio": ratio}
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "target" / "bench" / "python.json")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # stamina logs every retry, and that is not what is measured

    rows: list[dict[str, Any]] = []
    contenders: Bench = {"plain": plain, "hand loop": hand_loop(plain), **peers(plain)}
    best = measure(contenders, time_sync, options.rounds, 0.01)
    rows += table("success, sync", best, best["plain"])

    contenders = {
        "plain": aplain,
        "bare loop": bare_loop(aplain),
        "hand loop": hand_loop_async(aplain),
        **peers(aplain),
    }
    best = measure(contenders, time_async, options.rounds, 0.01)
    rows += table("success, async", best, best["plain"])

    flaky = fails_every_other_time()
    contenders = {"hand loop": hand_loop(flaky), **peers(flaky)}
    best = measure(contenders, time_sync, options.rounds, 0.02)
    rows += table("one failure, then success, sync", best, 0.0)

    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"\nwritten to {options.out}")


if __name__ == "__main__":
    main()
