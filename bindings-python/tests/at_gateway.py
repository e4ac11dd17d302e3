"""The fault gateway, as the tests of the integrations use it: one process, and a drill of its own for each test."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


class Drill:
    """What one test asks of the gateway."""

    def __init__(self, origin: str) -> None:
        self.origin, self.url, self.id = origin, f"{origin}/v1", uuid.uuid4().hex

    @property
    def headers(self) -> dict[str, str]:
        """What every request of the test has to send."""
        return {"x-drill-id": self.id}

    def visits(self) -> list[dict[str, Any]]:
        """The requests that reached the gateway, oldest first."""
        with urllib.request.urlopen(f"{self.origin}/__stats?drill={self.id}") as answer:
            drills = json.load(answer)["drills"]
        found = [
            visit for marker in drills.get(self.id, {}).get("behaviours", {}).values() for visit in marker["requests"]
        ]
        return sorted(found, key=lambda visit: visit["at_ms"])

    def played(self) -> list[str]:
        """What each of them met."""
        return [visit["played"] for visit in self.visits()]


@contextmanager
def gateway() -> Iterator[str]:
    """A gateway, and its origin."""
    command = TARGET / "release" / "gateway"
    assert command.exists(), "there is no gateway: `make gateway` builds it"
    arguments = [str(command), "--until-stdin-closes"]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().split()[-1]
        process.stdin.close()
