"""Every `call` vector through the drivers of streams: their items come when the case says so."""

from __future__ import annotations

from typing import Any

import pytest
from driven import Clock, Mode
from driven_streams import MODES, StreamLane
from test_vectors_driver import clock, stands_still
from vectors import Case, Played, Tally, World, cases, verb

from reprieve import Policy

__all__ = ["clock"]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_call_vectors_through_streams(mode: Mode, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally("call", mode.name)

    def play(case: Case) -> None:
        lanes: list[StreamLane] = []

        def fresh(world: World, policy: Policy, seed: int, ids: dict[str, Any]) -> Played:
            lanes.append(StreamLane(world, policy, seed, ids, mode))
            return lanes[-1]

        clock.set(0)
        try:
            World(case, clock, fresh).play()
        finally:
            for lane in lanes:
                lane.close()

    for case in cases("call"):
        tally.run(case, play, unplayable(case))
    line = tally.report()
    with capsys.disabled():
        print(f"\n{line}", end="")


def unplayable(case: Case) -> str | None:
    """Why a stream cannot be made to do what the case says; read off its steps."""
    if "raw_only" in case:
        return str(case["raw_only"])
    if "hedge" in (case.get("policy") or {}):
        return "attempts beside each other are played by test_vectors_hedge.py"
    steps = [(*verb(step["do"]), step) for step in case["steps"]]
    words = {word for word, _, _ in steps}
    if words & {"snapshot", "restore"}:
        return "a stream has no handle to take snapshots with"
    if any("usage" in {**step["do"], **step["do"].get("success", {})} for word, _, step in steps if word in OUTCOMES):
        return "usage is read from items, which are words here"
    if stands_still(case):
        return "a driver does not stand still between a wait of zero and its begin"
    return None


OUTCOMES = ("success", "failure", "evidence")
