"""One policy in many threads, forked children, greenlets and spawned processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from failing import at_once, fails

import reprieve
from reprieve import Guards, Policy, Run, current_attempt

HERE = Path(__file__).parent


def python(code: str, seconds: float = 300) -> str:
    """Runs it in a Python of its own; what it prints."""
    path = os.pathsep.join([str(HERE), *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- threads ---


def test_one_policy_in_sixteen_threads() -> None:
    events: list[Any] = []
    guarded = at_once(max_attempts=3, breaker={"consecutive_failures": 10**6}, retry_budget={"capacity": 10**6})
    bound = guarded.bind(on_event=events.append)
    plain = at_once(max_attempts=3)(lambda script: script())

    def work(n: int) -> list[Any]:
        seen: list[Any] = []
        for i in range(500):
            failures = (n + i) % 4
            script = fails(failures, value=(n, i))
            if i % 2:
                result = bound.execute(script) if i % 50 == 1 else guarded.execute(script)
                seen.append((result.ok, result.attempts, result.value))
                expected = (failures < 3, min(failures + 1, 3), (n, i) if failures < 3 else None)
            else:
                try:
                    seen.append(plain(script))
                except TimeoutError:
                    seen.append(None)
                expected = (n, i) if failures < 3 else None
            assert seen[-1] == expected
            assert script.count == min(failures + 1, 3)
        return seen

    with ThreadPoolExecutor(16) as pool:
        assert sum(map(len, pool.map(work, range(16)))) == 16 * 500
    assert current_attempt() is None
    per_call: dict[str, list[str]] = {}
    for event in events:
        per_call.setdefault(event["trace_id"], []).append(event["event"])
    assert len(per_call) == 16 * 10
    assert all(e[0] == "attempt_started" and e[-1] in ("succeeded", "gave_up") for e in per_call.values())


def test_guards_are_shared_by_threads() -> None:
    policy = at_once(max_attempts=1, breaker={"consecutive_failures": 64, "open_for": 300})
    barrier = threading.Barrier(8)

    def work(_: int) -> int:
        barrier.wait(60)
        for _ in range(8):
            policy.execute(fails(9))
        return 8

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 64
    assert policy.guards.breaker_state(policy) == "open"


def test_a_run_counts_exactly_over_threads() -> None:
    run = Run(attempts=100)
    bound = at_once(max_attempts=1).bind(run=run)
    scripts = [fails(0) for _ in range(8)]

    def work(n: int) -> int:
        return sum(bound.execute(scripts[n]).ok for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 100
    assert sum(script.count for script in scripts) == 100


def test_a_run_that_is_cancelled_wakes_every_thread() -> None:
    import time

    run = Run()
    bound = Policy(backoff={"base": 300, "max": 300}).bind(run=run)
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(bound.execute, fails(9)) for _ in range(8)]
        time.sleep(0.05)
        began = time.monotonic()
        run.cancel("enough")
        results = [future.result(60) for future in waiting]
    assert time.monotonic() - began < 30
    assert {result.stop_reason for result in results} == {"cancelled"}
    assert all("run" in str(result.error) for result in results)


# --- processes ---


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_fresh_and_works() -> None:
    said = python(
        """
        import os, threading, warnings
        from failing import at_once, fails
        from reprieve import Guards, Run, faults
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads, which is the point
        policy = at_once(max_attempts=1, breaker={"consecutive_failures": 1, "open_for": 300})
        policy.execute(fails(9))
        assert policy.guards.breaker_state(policy) == "open"
        run = Run(attempts=10**6)
        stop = threading.Event()
        def broken(_): raise ZeroDivisionError
        def busy():
            while not stop.is_set():
                at_once().bind(run=run, sink=broken).execute(fails(1))
                policy.execute(fails(1))
        threads = [threading.Thread(target=busy, daemon=True) for _ in range(3)]
        for thread in threads: thread.start()
        for _ in range(30):
            child = os.fork()
            if child == 0:
                import signal
                signal.alarm(120)
                ok = policy.guards.breaker_state(policy) == "closed"
                ok = ok and at_once().call(fails(2)) == "ok"
                ok = ok and at_once().bind(run=run, sink=broken).call(fails(1)) == "ok"
                ok = ok and policy.call(fails(0)) == "ok" and faults()["sink"] > 0
                run.cancel()
                os._exit(0 if ok else 3)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        assert not run.ended
        assert policy.guards.breaker_state(policy) == "open"
        print("done")
        """,
    )
    assert said == "done"


def test_a_fork_within_an_attempt() -> None:
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    said = python(
        """
        import os
        from failing import at_once, fails
        from reprieve import current_attempt
        def forks():
            seen = current_attempt().trace_id
            child = os.fork()
            if child == 0:
                inner = at_once().execute(fails(1))
                os._exit(0 if current_attempt().trace_id == seen and inner.ok else 3)
            assert os.waitpid(child, 0)[1] == 0
            return "done"
        print(at_once().call(forks))
        """
    )
    assert said == "done"


def test_policies_and_decorated_functions_go_to_spawned_processes() -> None:
    said = python(
        """
        import multiprocessing
        import spawned
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.apply(spawned.policy_of, (spawned.POLICY,)))
                print(pool.apply(spawned.decorated, (20,)))
                try:
                    pool.apply(spawned.fails)
                except TimeoutError as error:
                    print(spawned.attempts_of(error))
        """
    )
    assert said.split() == ["3", "21", "2"]


def test_an_inner_call_in_another_process_is_an_inner_call() -> None:
    said = python(
        """
        import multiprocessing
        import spawned
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                result = spawned.POLICY.execute(pool.apply, spawned.fails)
                print(result.attempts, result.stop_reason)
        """
    )
    assert said == "1 attempts_exhausted"


def test_guards_and_faults_are_not_carried_by_pickle() -> None:
    import pickle

    guards = Guards()
    guards.report(queue_depth=7)
    assert pickle.loads(pickle.dumps(guards)).describe() == Guards().describe()
    assert isinstance(reprieve.faults(), dict)


# --- greenlets ---


def test_gevent_s_greenlets_overlap_and_see_their_own_attempts() -> None:
    pytest.importorskip("gevent")
    said = python(
        """
        from gevent import monkey; monkey.patch_all()
        import time, gevent, threading
        from failing import at_once, still, fails
        from reprieve import current_attempt, Run
        policy = at_once(attempt_timeout=5)
        order = []
        def one(n):
            mine = current_attempt()
            assert mine.timeout == 1 + n, (mine, n)
            order.append(n)
            time.sleep(0.01 * (n % 3))
            assert current_attempt() is mine and mine.trace_id == current_attempt().trace_id
            if mine.number == 1: raise TimeoutError
            return n
        decorated = [at_once(attempt_timeout=1 + n)(one) for n in range(10)]
        greenlets = [gevent.spawn(decorated[n], n) for n in range(10)]
        assert [g.get() for g in greenlets] == list(range(10))
        assert order != sorted(order), "attempts overlap"
        assert current_attempt() is None

        attempts = []
        slow = still(backoff={"base": 0.05, "max": 0.05})
        def thrice():
            attempts.append(current_attempt().number)
            if attempts[-1] < 3: raise TimeoutError
            return "ok"
        greenlets = [gevent.spawn(slow.call, thrice) for _ in range(20)]
        assert [g.get() for g in greenlets] == ["ok"] * 20
        assert attempts != [1, 2, 3] * 20, "waits overlap"

        def outer():  # the main greenlet's attempt is not that of others
            seen = []
            g = gevent.spawn(lambda: seen.append(current_attempt()))
            time.sleep(0.01)
            assert current_attempt() is not None
            return seen
        assert policy.call(outer) == [None]

        run = Run()
        waiting = gevent.spawn(still(backoff={"base": 300, "max": 300}).bind(run=run).execute, fails(9))
        time.sleep(0.01)
        run.cancel()
        assert waiting.get(timeout=60).stop_reason == "cancelled"

        killed = gevent.spawn(still(backoff={"base": 300, "max": 300}).call, fails(9))
        time.sleep(0.01)
        killed.kill(timeout=60)
        assert isinstance(killed.value, gevent.GreenletExit)
        handle = policy.start(fails(1))
        assert handle.result(60) == "ok"
        print("done")
        """
    )
    assert said == "done"


def test_greenlets_that_come_into_use_later_are_noticed() -> None:
    pytest.importorskip("greenlet")
    said = python(
        """
        from failing import at_once, fails
        from reprieve import current_attempt
        decorated = at_once()(lambda switch: (switch(), current_attempt().trace_id)[1])
        assert decorated(lambda: None)
        import greenlet
        main = greenlet.getcurrent()
        seen = []
        def in_greenlet():
            seen.append(decorated(lambda: main.switch(current_attempt().trace_id)))
        child = greenlet.greenlet(in_greenlet)
        inner = child.switch()
        assert current_attempt() is None          # the child is inside of its attempt, and we are not
        mine = decorated(lambda: child.switch())   # it ends within ours
        assert seen == [inner] and mine != inner
        assert current_attempt() is None
        print("done")
        """
    )
    assert said == "done"
