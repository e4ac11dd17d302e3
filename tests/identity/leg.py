"""One leg of a call that travels, in Python: `leg.mjs` is the same in JavaScript, and `travel.mjs` says what a leg is.

python tests/identity/leg.py < TASK > END
"""

from __future__ import annotations

import json
import sys
from typing import Any

from reprieve import Call, Policy


def leg(task: dict[str, Any]) -> dict[str, Any]:
    """Takes a call up, plays its outcomes, and lays it down again."""
    at, epoch = task["at_ns"], task["epoch_ns"]

    def wall() -> int:
        return int(task["wall_ms"] + at // 1_000_000)

    if "snapshot" in task:
        call, action = Call.restore(task["snapshot"], epoch + at, wall())
    else:
        call = Call(Policy.from_json(json.dumps(task["policy"])), int(task["seed"]), ids=task["ids"])
        action = call.begin(epoch + at)
    attempts: list[int] = []
    for outcome in task["outcomes"]:
        if action.kind in ("retry", "fallback"):
            at += action.after_ns or 0
            action = call.begin(epoch + at)
        if action.number is None:
            raise RuntimeError(f"no attempt was begun, but {action.kind}")
        attempts.append(action.number)
        at += outcome["took_ns"]
        told = {name: value for name, value in outcome.items() if name != "took_ns"}
        action = call.on_outcome(epoch + at, action.number, told)
    if action.kind == "done":
        return {"attempts": attempts, "kind": "done", "records": call.records}
    at += task["pause_ns"]
    return {"attempts": attempts, "kind": action.kind, "at_ns": at, "snapshot": call.snapshot(epoch + at, wall())}


if __name__ == "__main__":
    json.dump(leg(json.load(sys.stdin)), sys.stdout)
