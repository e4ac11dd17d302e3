"""LangGraph: a node under a policy, or a policy as the retry policy of a node.

A node is a function, so a policy decorates it, and everything holds: retry-afters, deadlines, guards, records.

    graph.add_node("ask", policy(ask))

Where LangGraph is to do the retrying (each attempt a step of its own, with the writes of the failed one dropped), it
asks the policy what to retry, and takes its attempts and waits from it:

>>> from reprieve import Policy
>>> from reprieve.integrations.langgraph import retry_policy
>>> retry_policy(Policy(max_attempts=4)).max_attempts
4

It waits by its own curve then: no retry-after is honoured, and no deadline holds. A node of the first kind inside of
that is not tried again: `is_retriable` refuses what a call has retried already. An interrupt is no failure to either.
"""

from __future__ import annotations

import json
from typing import Any

from langgraph.types import RetryPolicy

from .._native import parse_duration
from ._chain import Rules, bound_of

__all__ = ["retry_policy"]


def retry_policy(policy: Rules) -> RetryPolicy:
    """LangGraph's own retry policy with the attempts, the backoff and the judgement of this one.

    LangGraph knows exponential waits only: of a `constant` curve it takes the wait, of any other the first and the
    longest.
    """
    bound = bound_of(policy)
    fields: dict[str, Any] = json.loads(bound.policy.to_json())
    backoff, jitter = fields["backoff"], fields.get("jitter", {"kind": "drawn"})
    delays = [parse_duration(delay) / 1e9 for delay in backoff.get("delays", ())]
    first = delays[0] if delays else parse_duration(backoff["base"]) / 1e9
    longest = max(delays) if delays else parse_duration(backoff["max"]) / 1e9
    return RetryPolicy(
        initial_interval=first,
        backoff_factor=1.0 if backoff["kind"] == "constant" else float(backoff.get("factor", 2)),
        max_interval=longest,
        max_attempts=bound._native.max_attempts_of_first,
        jitter=jitter["kind"] != "none",
        retry_on=bound.is_retriable,
    )
