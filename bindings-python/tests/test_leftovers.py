"""What an earlier call or attempt left behind decides nothing, and what an inner call left is never lost."""

from __future__ import annotations

import asyncio

import pytest

import reprieve
from reprieve import Failure, Policy, Run

POLICY = Policy(backoff={"kind": "constant", "base": 0, "max": 0}, jitter={"kind": "none"})


def test_a_classify_that_answers_a_failure_of_its_own_does_not_hide_an_inner_call() -> None:
    tries = 0

    def inner() -> None:
        nonlocal tries
        tries += 1
        raise TimeoutError

    def other(error: Exception) -> Failure:
        return reprieve.classify(status=503)

    result = POLICY.bind(classify=other).execute(POLICY.call, inner)

    assert tries == 3  # layers add: 3 + 0, and never multiply: 3 x 3
    assert result.stop_reason == "attempts_exhausted"
    assert result.failure is not None
    assert result.failure.kind == "overloaded"


REUSED = TimeoutError("one object, raised again and again")


def test_a_trace_of_an_earlier_call_on_a_reused_exception_is_no_inner_call() -> None:
    def fails() -> None:
        raise REUSED

    for _ in range(2):
        with pytest.raises(TimeoutError) as raised:
            POLICY.call(fails)
        trace = reprieve.trace_of(raised.value)
        assert trace is not None
        assert len(trace.receipts) == 3


def test_nor_is_it_for_a_coroutine() -> None:
    async def fails() -> None:
        raise REUSED

    for _ in range(2):
        with pytest.raises(TimeoutError) as raised:
            asyncio.run(POLICY.call(fails))
        trace = reprieve.trace_of(raised.value)
        assert trace is not None
        assert len(trace.receipts) == 3


def test_a_cancellation_that_arrives_after_the_attempt_leaves_the_task_alone() -> None:
    run = Run()

    async def cancels_its_run_and_succeeds() -> int:
        run.cancel("enough")
        return 42

    async def main() -> tuple[int, bool]:
        value = await POLICY.bind(run=run).call(cancels_its_run_and_succeeds)
        await asyncio.sleep(0)  # what was put off to the next turn happens here
        await asyncio.sleep(0)
        return value, True

    assert asyncio.run(main()) == (42, True)
