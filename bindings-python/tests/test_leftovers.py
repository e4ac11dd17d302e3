"""What an earlier call or attempt left behind decides nothing, and what an inner call left is never lost."""

from __future__ import annotations

import reprieve
from reprieve import Failure, Policy, testing

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
    assert (result.stop_reason, result.failure.kind) == ("attempts_exhausted", "overloaded")
