"""Every `call` vector through the drivers: plain functions, asyncio and trio, and both forms of the happy path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from driven import Clock, Lane
from driving import MODES, Mode
from vectors import Case, Played, Raw, Tally, World, cases, hands, ns, verb

from reprieve import Policy
from reprieve._session import Session


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    """The clock in force; whoever runs hears what sessions are told."""
    clock, tell = Clock(), Session._told

    def told(session: Session, action: Any) -> Any:
        if clock.lane is not None:
            clock.lane.told(session, action)
        return tell(session, action)

    monkeypatch.setattr(Session, "_told", told)
    with hands(clock):
        yield clock


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_call_vectors_through_the_drivers(mode: Mode, clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    tally, went_on_raw = Tally("call", mode.name), 0

    def play(case: Case) -> None:
        nonlocal went_on_raw
        lanes: list[Lane] = []

        def fresh(world: World, policy: Policy, seed: int, ids: dict[str, Any]) -> Played:
            lanes.append(Lane(world, policy, seed, ids, mode))
            return lanes[-1]

        clock.set(0)
        world = World(case, clock, fresh)
        try:
            world.play()
        finally:
            went_on_raw += isinstance(world.call, Raw)
            for lane in lanes:
                lane.close()

    for case in cases("call"):
        tally.run(case, play, unplayable(case, mode))
    line = tally.report()
    with capsys.disabled():
        print(f"\n{line}; {went_on_raw} went on raw after a restore, which no driver does", end="")


def unplayable(case: Case, mode: Mode) -> str | None:
    """Why a driver cannot be made to do what the case says; read off its steps."""
    if "raw_only" in case:
        return str(case["raw_only"])
    if "hedge" in (case.get("policy") or {}):
        return "attempts beside each other are played by test_vectors_hedge.py"
    steps = [(*verb(step["do"]), step) for step in case["steps"]]
    if any(word == "first_item" or _streams(step["do"]) for word, _, step in steps):
        return "streams are played by test_vectors_streams.py"
    if any("usage" in step["do"] for word, _, step in steps if word in ("failure", "evidence")):
        return "a function that raises reports no usage"
    if stands_still(case):
        return "a driver does not stand still between a wait of zero and its begin"
    if steps[0][0] == "snapshot":
        return "a handle's call has begun"
    return _not_late(case) if mode.late else None


def _streams(do: Any) -> bool:
    told = {**do, **do.get("success", {})} if isinstance(do, dict) else {}
    return bool(told.get("delivered") or told.get("delivering"))


def stands_still(case: Case) -> bool:
    """Something happens to a call that was told not to wait before it begins."""
    for step, after in zip(case["steps"], case["steps"][1:], strict=False):
        told = step.get("expect")
        body = (told.get("retry") or told.get("fallback")) if isinstance(told, dict) else None
        if body and ns(body.get("after", "0s")) == 0:
            word = verb(after["do"])[0]
            if word in ("cancel", "snapshot") or (word == "begin" and after["at"] != step["at"]):
                return True
    return False


def _not_late(case: Case) -> str | None:
    words = [verb(step["do"])[0] for step in case["steps"]]
    if {"guards", "run", "options"} & case.keys() or {"cancel", "snapshot"} & set(words):
        return "more than the policy bounds the call: it is not started late"
    for first, second in zip(words, [*words[1:], ""], strict=True):
        if first == "begin" and second not in ("failure", "evidence"):
            return "no machine is made where the first attempt does not fail"
        if first == "begin":
            break
    return None
