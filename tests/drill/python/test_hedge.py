"""Hedging with a real client: what is counted agrees, and hedges answer first. How fast, `hedge.py` shows."""

from __future__ import annotations

from drill import TARGET
from hedge import EVERY, compare, table
from places import Gateway

CALLS = 4 * EVERY


def test_every_slow_answer_is_overtaken() -> None:
    with Gateway(TARGET / "release" / "gateway") as gateway:
        seen = compare(gateway, CALLS)
    plain, hedged = seen["without"], seen["with"]
    assert all(result.ok for one in seen.values() for result in one.results)
    assert (plain.requests, plain.hedges) == (CALLS, 0)

    # Every twentieth request is slow, whoever made it: as many are joined, and more only where this machine is slow.
    assert hedged.hedges >= CALLS // EVERY
    assert hedged.won >= 1
    assert CALLS < hedged.requests <= CALLS + hedged.hedges, "a hedge may be cancelled before it was sent"
    decisions = [receipt["decision"] for result in hedged.results for receipt in result.trace.receipts]
    assert decisions.count("superseded") == hedged.hedges
    assert decisions.count("done") == CALLS
    assert f"{hedged.requests:8}" in table(seen, CALLS)
