"""The fault gateway, as the tests of the integrations use it: one process, and a drill of its own for each test."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
#: What it answers where no fault is asked for.
ANSWER = "The gateway answers: all is well, 世界é"
#: The marker of an answer that nobody waits for.
NEVER = "slow=600000"
#: Attempts enough, where what is too slow is cut: on a busy machine what is meant to be answered may be cut as well.
OFTEN = 50


class Drill:
    """What one test asks of the gateway."""

    def __init__(self, origin: str) -> None:
        self.origin, self.url, self.id = origin, f"{origin}/v1", uuid.uuid4().hex

    @property
    def headers(self) -> dict[str, str]:
        """What every request of the test has to send."""
        return {"x-drill-id": self.id}

    def address(self, marker: str, *, sse: bool = False) -> str:
        """Where a request by any method is answered with these faults, or with a stream of events."""
        return f"{self.origin}/any?q={quote(f'#[{marker}]')}{'&stream=true' if sse else ''}"

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

    async def reached(self) -> None:
        """Waits until a request has come."""
        while not await asyncio.to_thread(self.visits):
            await asyncio.sleep(0.01)


def cut_then(played: list[str], *answered: str, cut: str = NEVER) -> bool:
    """Whether the first request was cut, and the next ones were answered. One that was cut may not have reached the
    gateway, and an answer may have been cut, too."""
    return played[:1] == [cut] and len(played) > len(answered) and set(played[1:]) == set(answered)


def in_the_end(seen: Callable[[], T], fine: Callable[[T], bool]) -> T:
    """What is seen when it is fine, or at last: a short timer may cut on a busy machine what it should leave alone."""
    for _ in range(OFTEN):
        if fine(last := seen()):
            break
    return last


def asker(drill: Drill) -> Any:
    """A function that asks for what a marker says, with a client of `openai` that does not retry."""
    import openai

    client = openai.OpenAI(api_key="k", base_url=drill.url, max_retries=0, default_headers=drill.headers)

    def ask(marker: str) -> str | None:
        messages: Any = [{"role": "user", "content": f"#[{marker}]"}]
        return client.chat.completions.create(model="m", messages=messages).choices[0].message.content

    return ask


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
