"""Snapshots: where a call goes on, and that a damaged one or one from the future resumes nothing."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from reprieve import Call, Policy, Run, SnapshotError, testing

WALL = 1_700_000_000_000


def waiting() -> str:
    call = Call(Policy(jitter={"kind": "none"}), 7, ids={"trace_id": "a" * 32, "scene": "s"})
    call.begin(0)
    call.on_outcome(1_000_000, 1, {"failure": {"kind": "timeout", "message": "slow"}})
    return call.snapshot(2_000_000, WALL)


def test_a_snapshot_goes_on_where_it_was() -> None:
    call, action = Call.restore(waiting(), 50_000_000, WALL + 100)
    assert (call.state, action.kind, action.after) == ("waiting", "retry", 0.399)
    later, action = Call.restore(waiting(), 0, WALL + 10_000)
    assert (later.state, action.kind) == ("waiting", "retry")
    assert later.begin(action.after_ns or 0).number == 2
    assert later.records[0]["message"] == "slow"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "0", '"text"', "{}", '{"version": 1}', "[" * 100_000, "\ud800"]
)
def test_what_is_no_snapshot_is_refused(text: str) -> None:
    with pytest.raises(SnapshotError):
        Call.restore(text, 0, WALL)


def test_a_snapshot_from_the_future_is_refused() -> None:
    snapshot: dict[str, Any] = json.loads(waiting())
    snapshot["version"] = 999
    with pytest.raises(SnapshotError, match="999"):
        Call.restore(json.dumps(snapshot), 0, WALL)


@pytest.mark.parametrize("broken", [None, -1, 10**30, "x", [], {}, True, 1.5])
def test_every_field_may_be_damaged(broken: Any) -> None:
    snapshot: dict[str, Any] = json.loads(waiting())
    for name in snapshot:
        try:
            call, action = Call.restore(json.dumps({**snapshot, name: broken}), 0, WALL)
        except SnapshotError:
            continue
        assert call.state in ("ready", "waiting", "ended"), name
        assert action.after_ns is None or action.after_ns >= 0


def test_any_byte_may_be_damaged() -> None:
    chance, whole = random.Random(5), waiting()
    for _ in range(500):
        text = list(whole)
        for _ in range(chance.randint(1, 3)):
            text[chance.randrange(len(text))] = chance.choice('0123456789"{}[],:-eax')
        try:
            call, _action = Call.restore("".join(text), 0, WALL)
        except SnapshotError:
            continue
        assert call.state in ("ready", "waiting", "ended")


def test_a_snapshot_cut_short_is_refused() -> None:
    whole = waiting()
    for length in range(0, len(whole) - 1, 7):
        with pytest.raises(SnapshotError):
            Call.restore(whole[:length], 0, WALL)


def test_a_restored_call_is_bounded_by_the_deadline_of_its_run() -> None:
    with testing.virtual() as clock:
        call = Call(Policy(attempt_timeout=60, jitter={"kind": "none"}), seed=7)
        call.begin(clock.now())
        call.on_outcome(clock.now(), 1, {"failure": {"kind": "timeout"}})
        snapshot = call.snapshot(clock.now(), clock.wall_ms())
        run = Run(deadline=3)
        restored, _ = Call.restore(snapshot, clock.now(), clock.wall_ms(), run=run)
        clock.advance(1)
        assert restored.begin(clock.now()).timeout == 2.0
