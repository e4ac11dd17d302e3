"""Hedging with a real client: what is counted agrees, and hedges answer first. How fast, `hedge.py` shows."""

from __future__ import annotations

import pytest
from drill import TARGET
from hedge import EVERY, WAITS, Seen, compare, table
from places import Gateway

CALLS = 4 * EVERY


@pytest.fixture(scope="module")
def seen() -> dict[tuple[str, str], Seen]:
    with Gateway(TARGET / "release" / "gateway") as gateway:
        return compare(gateway, CALLS)


@pytest.mark.parametrize("what", WAITS)
def test_every_slow_answer_is_overtaken(seen: dict[tuple[str, str], Seen], what: str) -> None:
    plain, hedged = seen[what, "no"], seen[what, "yes"]
    ends = [trace.ended["outcome"] for one in (plain, hedged) for trace in one.traces if trace.ended]
    assert ends == ["success"] * 2 * CALLS
    assert (plain.requests, plain.hedges) == (CALLS, 0)

    # Every twentieth request is slow, whoever made it: as many are joined, and more only where this machine is slow.
    assert hedged.hedges >= CALLS // EVERY
    assert hedged.won >= 1
    assert CALLS < hedged.requests <= CALLS + hedged.hedges, "a hedge may be cancelled before it was sent"
    decisions = [receipt["decision"] for trace in hedged.traces for receipt in trace.receipts]
    assert decisions.count("superseded") == hedged.hedges
    assert decisions.count("done") == CALLS
    assert f"{hedged.requests:8}" in table(seen, CALLS)
