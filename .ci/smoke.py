"""What must work under every Python, with nothing installed but the wheel: calls, waits, cuts, threads, pickles, and
the examples in the package's own documentation.
"""

import asyncio
import doctest
import importlib
import pathlib
import pickle
import pkgutil
import sys
import threading
import time

import reprieve
from reprieve import Policy, testing, trace_of

ATTEMPTS = 3
QUICK = Policy(max_attempts=ATTEMPTS, backoff={"base": 0.001})


class Flaky:
    def __init__(self, failures):
        self.calls, self.failures, self.lock = 0, failures, threading.Lock()

    def __call__(self):
        with self.lock:
            self.calls += 1
            if self.calls <= self.failures:
                raise TimeoutError("not yet")
            return self.calls

    async def later(self):
        await asyncio.sleep(0)
        return self()


def functions():
    assert QUICK(Flaky(2))() == ATTEMPTS
    error = QUICK.execute(Flaky(ATTEMPTS)).error
    assert isinstance(error, TimeoutError)
    assert len(trace_of(error).receipts) == ATTEMPTS


def coroutines():
    async def slow():
        await asyncio.sleep(300)

    assert asyncio.run(QUICK.call(Flaky(2).later)) == ATTEMPTS
    began = time.monotonic()
    result = asyncio.run(Policy(max_attempts=1, attempt_timeout=0.05).execute(slow))
    assert isinstance(result.error, reprieve.AttemptTimeout), result
    assert time.monotonic() - began < 60


def threads():
    counted = Flaky(0)
    decorated = QUICK(counted)
    workers = [threading.Thread(target=decorated) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert counted.calls == len(workers)


def pickles():
    policy = Policy.preset("llm")
    assert pickle.loads(pickle.dumps(policy)) == policy


def a_virtual_clock():
    with testing.virtual() as clock:
        assert Policy(jitter={"kind": "none"}).execute(Flaky(9)).stop_reason == "attempts_exhausted"
    assert clock.sleeps == [0.5, 1.0]


def documentation():
    tried = 0
    for found in pkgutil.iter_modules(reprieve.__path__):
        if found.name == "_on_trio":  # needs trio
            continue
        failed, count = doctest.testmod(importlib.import_module(f"reprieve.{found.name}"))
        assert not failed, found.name
        tried += count
    return tried + doctest.testmod(reprieve).attempted


def main():
    place = pathlib.Path(reprieve.__file__).resolve()
    assert pathlib.Path(sys.argv[1]).resolve() in place.parents, f"another reprieve is in the way: {place}"
    checks = [functions, coroutines, threads, pickles, a_virtual_clock]
    for check in checks:
        check()
    print(f"{sys.version.split()[0]}: {len(checks)} checks, {documentation()} examples")


if __name__ == "__main__":
    main()
