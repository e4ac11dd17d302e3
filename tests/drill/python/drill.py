"""The drill in Python: the `openai` and `anthropic` clients, plain and async, against the fault gateway.

    python tests/drill/python/drill.py [--only ID ...] [--scenarios FILE] [--gateway FILE] [--out DIR]

Prints a table, a row for each step of a scenario with all clients in it, and one call's timeline; writes
`python-receipts.jsonl` and `python.json`. Exits with 1 if anything differs from `scenarios.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from check import differences, hidden
from clients import Client, Clients
from places import FullBacklog, Gateway
from play import Json, Player, SeenStep, drill_id, steps_of
from table import Table, expected_words, seen_words

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parents[2] / "target")
#: How many are played at once: enough to be quick, and few enough to keep times on a small machine.
AT_ONCE = 8
#: Whose timeline is shown, and with which client.
SHOWN = ("backup", "anthropic")


@dataclass(frozen=True)
class Played:
    """A scenario with every client that can play it; in place of what was seen, the error that ended the play."""

    scenario: Json
    seen: dict[str, list[SeenStep] | BaseException]


def play(document: Json, clients: Clients, gateway: Gateway, backlog: FullBacklog) -> Iterator[Played]:
    """Plays all scenarios, some at once, and answers them in their order."""

    def player(scenario: Json, client: Client) -> Player:
        return Player(gateway, backlog, client, scenario, document["prompt_version"])

    with ThreadPoolExecutor(AT_ONCE, "play") as pool:
        playing: list[tuple[Json, dict[str, Future[list[SeenStep]]]]] = []
        for scenario in document["scenarios"]:
            able = [client for client in clients.all if client.can.issuperset(scenario.get("needs", []))]
            playing.append((scenario, {c.name: pool.submit(player(scenario, c).play) for c in able}))
        for scenario, futures in playing:
            yield Played(scenario, {name: future.exception() or future.result() for name, future in futures.items()})


def rows_of(played: Played) -> Iterator[tuple[Json, list[SeenStep], list[Json]]]:
    """Each step: its data, what was seen of it, and a row of results for each client."""
    for number, step in enumerate(steps_of(played.scenario)):
        expect, seen, rows = step["expect"], [], []
        for client, steps in played.seen.items():
            row: Json = {"scenario": played.scenario["id"], "title": step["title"], "client": client}
            if isinstance(steps, BaseException):
                row |= {"seen": "nothing", "differences": [f"the player failed: {steps!r}"]}
            else:
                seen.append(steps[number])
                row |= _result(expect, steps[number])
            rows.append({**row, "expected": expected_words(expect), "pass": not row["differences"]})
        yield step, seen, rows


def _result(expect: Json, seen: SeenStep) -> Json:
    return {
        "seen": seen_words(seen, expect),
        "attempts": [call.ended.get("attempts") for call in seen.calls],
        "elapsed_ms": [round(call.elapsed_ms, 1) for call in seen.calls],
        "requests": {target: len(requests) for target, requests in seen.requests.items() if requests},
        "differences": differences(expect, seen),
    }


class Drill:
    """One drill: its table, and what it writes."""

    def __init__(self) -> None:
        self.table = Table()
        self.results: list[Json] = []
        self.lines: list[str] = []
        self.timeline: str | None = None
        #: By drill id, as the gateway counts requests.
        self.attempts: Counter[str] = Counter()
        self._began = time.perf_counter()

    def run(self, document: Json, binary: Path) -> None:
        """Plays everything, and prints as it goes."""
        scenarios = document["scenarios"]
        with ExitStack() as stack:
            gateway, backlog = stack.enter_context(Gateway(binary)), stack.enter_context(FullBacklog())
            clients = Clients()
            stack.callback(clients.close)
            _warm_up(clients, gateway, backlog)
            print(f"Each scenario with {', '.join(client.name for client in clients.all)}.\n")
            self.table.head()
            for done, played in enumerate(play(document, clients, gateway, backlog), 1):
                self._add(played)
                self.table.status(f"{done} of {len(scenarios)} scenarios, {self.elapsed:.0f} s")
            self._compare(gateway.counts())
            self.table.rule()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._began

    @property
    def failures(self) -> int:
        return sum(not row["pass"] for row in self.results)

    def _add(self, played: Played) -> None:
        for step, seen, rows in rows_of(played):
            failed = [f"{row['client']}: {difference}" for row in rows for difference in row["differences"]]
            self.table.row(step["title"], step["expect"], seen, failed)
            self.results += rows
            for one in seen:
                self.lines += [line for call in one.calls for line in call.lines]
                attempts = sum(call.ended.get("attempts", 0) for call in one.calls)
                self.attempts[drill_id(played.scenario, one.client)] += attempts
                if (played.scenario["id"], one.client) == SHOWN:
                    self.timeline = one.calls[0].timeline

    def _compare(self, counts: dict[str, int]) -> None:
        """The gateway's last word: nothing came that no attempt has sent, not even late."""
        seen = {drill: count for drill, count in counts.items() if not drill.startswith("warm-up/")}
        most, failed = sum(self.attempts[drill] for drill in seen), hidden(self.attempts, seen)
        words = f"at most {most} requests", f"{sum(seen.values())} requests"
        self.table.line(("no hidden request", *words, "", ""), failed)
        row: Json = {"scenario": "no-hidden-request", "title": "no hidden request", "client": "all"}
        self.results.append({**row, "expected": words[0], "seen": words[1], "differences": failed, "pass": not failed})

    def write(self, out: Path) -> None:
        """The receipts, and the rows for a table of all languages."""
        out.mkdir(parents=True, exist_ok=True)
        (out / "python-receipts.jsonl").write_text("".join(f"{line}\n" for line in self.lines), encoding="utf-8")
        results = {"language": "Python", "seconds": round(self.elapsed, 1), "rows": self.results}
        (out / "python.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _warm_up(clients: Clients, gateway: Gateway, backlog: FullBacklog) -> None:
    """One answer for each client, so that no scenario pays for what clients load when they are first used."""
    scenario = {"id": "warm-up", "policy": {}, "prompts": {"primary": "#[ok]"}}
    for client in clients.all:
        [seen] = Player(gateway, backlog, client, scenario, "warm-up").play()
        error = seen.calls[0].error
        if error is not None:
            raise RuntimeError(f"{client.name} gets no answer from the gateway") from error


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def main() -> int:
    parser = argparse.ArgumentParser(description="The drill in Python.")
    parser.add_argument("--only", action="append", metavar="ID", help="play this scenario and no other; repeatable")
    parser.add_argument("--scenarios", type=Path, default=HERE.parent / "scenarios.json")
    parser.add_argument("--gateway", type=Path, default=TARGET / "release" / "gateway")
    parser.add_argument("--out", type=Path, default=TARGET / "drill")
    arguments = parser.parse_args()
    document = json.loads(arguments.scenarios.read_text(encoding="utf-8"))
    if arguments.only:
        known = {scenario["id"]: scenario for scenario in document["scenarios"]}
        if unknown := [id for id in arguments.only if id not in known]:
            parser.error(f"no such scenario: {', '.join(unknown)}; there are {', '.join(known)}")
        document["scenarios"] = [known[id] for id in arguments.only]
    if not arguments.gateway.exists():
        parser.error(f"there is no gateway at {arguments.gateway}: build it with `cargo build --release -p gateway`")
    drill = Drill()
    drill.run(document, arguments.gateway)
    drill.write(arguments.out)
    if drill.timeline:
        print(f"\nThe scenario {SHOWN[0]}, as {SHOWN[1]} went through it:\n{drill.timeline}")
    count = f"{len(drill.results)} results in {drill.elapsed:.1f} s, {drill.failures} failed"
    print(f"\n{count}; they and the receipts are in {_shown(arguments.out)}")
    return 1 if drill.failures else 0


if __name__ == "__main__":
    sys.exit(main())
