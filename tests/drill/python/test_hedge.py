"""Hedging with a real client: what is counted agrees, and hedges answer first. How fast, `hedge.py` shows."""

from __future__ import annotations

import asyncio

import pytest
from drill import TARGET
from hedge import EVERY, POLICIES, USUAL, WAITS, Marked, Seen, ask, table
from places import Gateway

SLOW_CALLS = 4
CALLS = SLOW_CALLS * EVERY
#: No machine stands still for so long, in milliseconds: this answer is not there before its hedge has been sent.
NEVER = 600_000


def played(what: str, hedged: str, first: str) -> Seen:
    """Plays the calls: of every twentieth the first attempt is answered like this, all others in the usual time.

    What each request meets is written in it, whenever it arrives: so no hedge is a slow one.
    """
    usual = f"#[slow={USUAL}]"
    markers = [f"#[{first}]", *[usual] * (EVERY - 1)] * SLOW_CALLS
    calls = [Marked(f"{what}-{hedged}-{n}".replace(" ", "-"), marker, usual) for n, marker in enumerate(markers)]
    with Gateway(TARGET / "release" / "gateway") as gateway:
        return asyncio.run(ask(gateway, POLICIES[hedged], WAITS[what], calls))


@pytest.mark.parametrize("what", WAITS)
def test_every_slow_answer_is_overtaken(what: str) -> None:
    hedged = played(what, "yes", f"slow={NEVER}")
    ends = [trace.ended["outcome"] for trace in hedged.traces if trace.ended]
    assert ends == ["success"] * CALLS

    # More are joined only where this machine is slow.
    assert hedged.hedges >= SLOW_CALLS
    assert hedged.won >= SLOW_CALLS
    assert CALLS <= hedged.requests <= CALLS + hedged.hedges, "a hedge may be cancelled before it was sent"
    decisions = [receipt["decision"] for trace in hedged.traces for receipt in trace.receipts]
    assert decisions.count("superseded") == hedged.hedges
    assert decisions.count("done") == CALLS
    assert f"{hedged.requests:8}" in table({(what, "yes"): hedged}, CALLS)


@pytest.mark.parametrize("what", WAITS)
def test_without_hedging_each_call_is_one_request(what: str) -> None:
    plain = played(what, "no", f"slow={USUAL}")
    ends = [trace.ended["outcome"] for trace in plain.traces if trace.ended]
    assert ends == ["success"] * CALLS
    assert (plain.requests, plain.hedges) == (CALLS, 0)
