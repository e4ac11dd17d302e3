"""Whatever happens, the drivers of plain functions and of coroutines make the same decisions and write the same
records. The examples are the same each time, so that what has passed passes again; `TIMES=50` draws others, and so many
times as many."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from failing import Status
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reprieve import Guards, Policy, Result, Run, testing

TIMES = int(os.environ.get("TIMES", "0"))
ERRORS: list[Callable[[], Exception]] = [
    TimeoutError,
    ConnectionResetError,
    lambda: Status(429),
    lambda: Status(429, retry_after="3"),
    lambda: Status(429, retry_after="3000"),
    lambda: Status(500),
    lambda: Status(529),
    lambda: Status(402),
    lambda: Status(404),
    lambda: Status(400),
    lambda: ValueError("unknown"),
]
#: How long an attempt takes, and how it ends.
step = st.tuples(st.sampled_from([0.0, 0.25, 2.0, 31.0]), st.sampled_from([None, *range(len(ERRORS))]))
policies = st.fixed_dictionaries(
    {"max_attempts": st.integers(1, 4), "total_timeout": st.sampled_from([5, 60, 600])},
    optional={
        "attempt_timeout": st.sampled_from([1, 30]),
        "min_attempt_time": st.sampled_from([0, 2]),
        "max_total_wait": st.sampled_from([0.1, 5]),
        "max_attempts_total": st.integers(1, 5),
        "side_effects": st.sampled_from(["idempotent", "unsafe"]),
        "jitter": st.sampled_from([{"kind": "none"}, {"kind": "full"}, {"kind": "additive", "ratio": 0.5}]),
        "targets": st.sampled_from(
            [[{"id": "a"}, {"id": "b"}], [{"id": "a", "max_attempts": 1}, {"id": "b"}, {"id": "c"}]]
        ),
        "breaker": st.just({"consecutive_failures": 2}),
        "retry_budget": st.just({"capacity": 30, "retry_cost": 14, "throttle_cost": 5, "refund": 1}),
        "cooldown": st.just({"max": 300, "bench": 300}),
        "requires_human_fallback": st.booleans(),
    },
)


class World:
    """One driver's world: a clock, guards, a run, and a script that is played from the start."""

    def __init__(self, fields: dict[str, Any], steps: list[tuple[float, int | None]], hooks: bool, clock: Any) -> None:
        self.clock, self.steps, self.played = clock, steps, 0
        self.lines: list[str] = []
        self.events: list[Any] = []
        options: dict[str, Any] = {}
        if hooks:
            options["retry_if"] = lambda error, failure: not isinstance(error, ConnectionResetError)
            options["backoff"] = lambda failure, n: n if failure.kind == "timeout" else None
        self.bound = Policy(**fields).bind(
            seed=7,
            trace_id="a" * 32,
            idempotency_key="key",
            guards=Guards(),
            run=Run(attempts=12),
            sink=self.lines.append,
            on_event=self.events.append,
            **options,
        )

    def function(self) -> dict[str, Any]:
        seconds, error = self.steps[self.played % len(self.steps)]
        self.played += 1
        self.clock.advance(seconds)
        if error is not None:
            raise ERRORS[error]()
        return {"usage": {"prompt_tokens": 100, "completion_tokens": 11}}

    async def coroutine(self) -> dict[str, Any]:
        return self.function()

    def told(self, results: list[Result[Any]]) -> Any:
        ends = [(r.ok, r.stop_reason, r.resume_in, r.attempts, r.latency, r.usage, type(r.error)) for r in results]
        records = [{k: v for k, v in json.loads(line).items() if k != "seed"} for line in self.lines]
        return ends, records, self.events, self.clock.sleeps, self.played


def plainly(world: World, calls: int) -> list[Result[Any]]:
    return [world.bound.execute(world.function) for _ in range(calls)]


async def in_coroutines(world: World, calls: int) -> list[Result[Any]]:
    return [await world.bound.execute(world.coroutine) for _ in range(calls)]


def nanoseconds(seconds: float) -> int:
    """As the core counts: sums of floats are off by a little."""
    return round(seconds * 1e9)


async def in_loops(world: World, calls: int) -> int:
    raised = 0
    for _ in range(calls):
        try:
            async for attempt in world.bound.attempts():
                with attempt:
                    world.function()
        except Exception:
            raised += 1
    return raised


def examples(count: int) -> settings:
    """So many examples, however long a busy machine takes to draw them."""
    slow = [HealthCheck.too_slow]
    return settings(max_examples=count * (TIMES or 1), derandomize=not TIMES, deadline=None, suppress_health_check=slow)


@examples(200)
@given(policies, st.lists(step, min_size=1, max_size=8), st.booleans(), st.integers(1, 4))
def test_plain_functions_and_coroutines(fields: Any, steps: Any, hooks: bool, calls: int) -> None:
    trio = pytest.importorskip("trio")

    def under_trio(main: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        return trio.run(main, *args)

    def under_asyncio(main: Callable[..., Any], *args: Any) -> Any:
        return asyncio.run(main(*args))

    seen = []
    for drive in (None, under_asyncio, under_trio):
        with testing.virtual() as clock:
            world = World(fields, steps, hooks, clock)
            results = plainly(world, calls) if drive is None else drive(in_coroutines, world, calls)
            seen.append(world.told(results))
    assert seen[0] == seen[1] == seen[2]

    with testing.virtual() as clock:
        world = World(fields, steps, hooks, clock)
        raised = asyncio.run(in_loops(world, calls))
        assert clock.sleeps == seen[0][3]
        assert raised == sum(not end[0] for end in seen[0][0])
        assert world.played == seen[0][4]


@examples(50)
@given(policies, st.lists(step, min_size=1, max_size=8))
def test_nothing_is_ever_started_late_or_too_often(fields: Any, steps: Any) -> None:
    with testing.virtual() as clock:
        world = World(fields, steps, False, clock)
        began = clock.now()
        policy = world.bound.policy
        starts: list[int] = []

        def noting() -> Any:
            starts.append(clock.now())
            return world.function()

        world.bound.execute(noting)
        assert all(start - began < fields["total_timeout"] * 1e9 for start in starts)
        assert 0 <= len(starts) <= min(fields.get("max_attempts_total", 99), 4 * len(policy.targets))
        assert all(wait >= 0 for wait in clock.sleeps)
        assert sum(nanoseconds(wait) for wait in clock.sleeps) <= nanoseconds(fields.get("max_total_wait", 600))
