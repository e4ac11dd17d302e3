"""`reprieve.testing`: a virtual clock, no real sleeping, attempts capped."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from failing import fails, still

from reprieve import ConfigError, Policy, Run, testing


def test_hours_pass_at_once() -> None:
    began = time.monotonic()
    with testing.virtual() as clock:
        result = still(backoff={"base": 3600, "max": 7200}, total_timeout="2d").execute(fails(2))
    assert time.monotonic() - began < 60
    assert (result.value, result.latency, clock.sleeps) == ("ok", 10800.0, [3600.0, 7200.0])


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_coroutines_too(backend: str) -> None:
    began = time.monotonic()

    async def main() -> object:
        return await still(backoff={"base": 250, "max": 250}).call(fails(2).coroutine())

    with testing.virtual() as clock:
        if backend == "asyncio":
            assert asyncio.run(main()) == "ok"
        else:
            assert pytest.importorskip("trio").run(main) == "ok"
    assert time.monotonic() - began < 60
    assert clock.sleeps == [250.0, 250.0]


def test_time_stands_still_unless_it_is_advanced() -> None:
    with testing.virtual() as clock:
        before = clock.now()
        time.sleep(0.001)
        assert clock.now() == before
        clock.advance(1.5)
        assert clock.now() == before + 1_500_000_000
        assert clock.sleeps == []


@pytest.mark.parametrize(("cap", "attempts"), [(None, 7), (1, 1), (2, 2), (9, 7)])
def test_attempts_are_capped_on_each_target(cap: int | None, attempts: int) -> None:
    with testing.virtual(attempts=cap):
        assert Policy(max_attempts=7).execute(function := fails(99)).attempts == function.count == attempts
        two = Policy(max_attempts=7, targets=[{"id": "a"}, {"id": "b"}])
        assert two.execute(fails(99)).attempts == 2 * attempts
        assert two.call(two.targets.__len__) == 2


@pytest.mark.parametrize("bad", [0, -1])
def test_a_cap_allows_one_attempt(bad: int) -> None:
    with pytest.raises(ConfigError, match="attempts"), testing.virtual(attempts=bad):
        pass


def test_decorated_before_it_is_open() -> None:
    decorated = still(backoff={"base": 60, "max": 60})(fails(2))
    with testing.virtual() as clock:
        assert decorated() == "ok"
    assert clock.sleeps == [60.0, 60.0]


def test_the_clock_before_comes_back() -> None:
    with testing.virtual() as outer:
        with pytest.raises(KeyError), testing.virtual():
            raise KeyError
        still(backoff={"base": 5}).execute(fails(1))
        assert outer.sleeps == [5.0]
    began = time.monotonic()
    still(backoff={"base": 0.01, "max": 0.01}).execute(fails(1))
    assert time.monotonic() - began >= 0.01


def test_handles_runs_and_events_do_not_wait_either() -> None:
    with testing.virtual() as clock:
        bound = still(backoff={"base": 60, "max": 60}).bind(run=Run(deadline=1000), cancel=threading.Event())
        assert bound.start(fails(1)).result(60) == "ok"
        assert bound.call(fails(1)) == "ok"
    assert clock.sleeps == [60.0, 60.0]


def test_waits_of_many_threads_are_all_kept() -> None:
    with testing.virtual() as clock:
        threads = [threading.Thread(target=still().call, args=(fails(2),)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(clock.sleeps) == [0.5] * 8 + [1.0] * 8
