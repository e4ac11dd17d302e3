"""Where the calls of the drill go: the fault gateway, and a listener that accepts nobody."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any


class Gateway:
    """The gateway's process, for as long as this is open."""

    def __init__(self, binary: Path) -> None:
        command = [str(binary), "--until-stdin-closes"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"{binary} does not listen: {line!r}")
        self.url = line.split()[-1]

    def requests(self, drill: str) -> dict[str, list[dict[str, Any]]]:
        """Every request of a drill so far, by the marker it came with, in the order of their arrival."""
        behaviours = self._stats(f"?drill={drill}").get(drill, {}).get("behaviours", {})
        return {f"#[{marker}]": behaviour["requests"] for marker, behaviour in behaviours.items()}

    def counts(self) -> dict[str, int]:
        """How many requests each drill has made so far."""
        return {drill: found["count"] for drill, found in self._stats().items()}

    def _stats(self, query: str = "") -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.url}/__stats{query}", timeout=60) as response:
            drills: dict[str, Any] = json.load(response)["drills"]
        return drills

    def __enter__(self) -> Gateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)  # closes its stdin, which ends it


class FullBacklog:
    """A listener whose queue is full: who connects to it waits, and is neither accepted nor refused."""

    #: A connection that has not come about after so many seconds never will.
    PATIENCE = 0.2
    MOST = 64

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._waiting: list[socket.socket] = []
        while self._one_more_fits():
            if len(self._waiting) > self.MOST:
                raise RuntimeError("this system queues more connections than a backlog of 0 allows")

    def _one_more_fits(self) -> bool:
        waiting = socket.socket()
        waiting.setblocking(False)
        waiting.connect_ex(self._listener.getsockname())
        self._waiting.append(waiting)
        return bool(select.select([], [waiting], [], self.PATIENCE)[1])

    def __enter__(self) -> FullBacklog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for held in (*self._waiting, self._listener):
            held.close()
