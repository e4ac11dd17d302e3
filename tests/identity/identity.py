"""Plays the random scripts that `core/examples/identity.rs` wrote, through Python's raw engine, and prints the hash of
the stream of actions, snapshots and records. It must be Rust's.

    python tests/identity/identity.py FILE
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

from reprieve import MisuseError, _native

IDS = json.dumps({"trace_id": "0123456789abcdef0123456789abcdef"})


def play(script: dict[str, Any]) -> str:
    """The stream of one script, a line for each thing said."""
    policy = _native.Policy.from_json(json.dumps(script["policy"]))
    guards = _native.Guards() if script["guards"] else None
    run = _native.Run(json.dumps(script["run"])) if "run" in script else None
    call = _native.Call(policy, int(script["seed"]), ids=IDS, guards=guards, run=run)
    stream: list[str] = []
    for step in script["steps"]:
        now = step["at"]
        try:
            match step["do"]:
                case "begin":
                    action = call.begin(now)
                case "cancel":
                    action = call.cancel(now)
                case "outcome":
                    action = call.on_outcome(now, step["attempt"], json.dumps(step["outcome"]))
                case _:
                    text = call.snapshot(now, step["wall"])
                    stream.append(text)
                    call, action = _native.Call.restore(
                        text,
                        now,
                        step["wall_later"],
                        count_suspended=step["count_suspended"],
                        guards=guards,
                        run=run,
                    )
            stream.append(action.to_json())
        except MisuseError:
            stream.append("misuse")
    return "".join(f"{line}\n" for line in [*stream, *call.lines()])


def main() -> None:
    digest, count = hashlib.sha256(), 0
    with open(sys.argv[1], encoding="utf-8") as scripts:
        for line in scripts:
            digest.update(play(json.loads(line)).encode())
            count += 1
    print(f"{count} scripts, python   {digest.hexdigest()}")


if __name__ == "__main__":
    main()
