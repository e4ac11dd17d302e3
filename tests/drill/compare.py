"""What a failure does to each client, without reprieve and with it: one row for each, in real time, as a table.

    python tests/drill/compare.py [--gateway FILE] [--out FILE] [PROGRAM ...]

Each PROGRAM (`.mjs`) plays the clients of another language: it is run by `node` and prints rows as lines of JSON, as
`Row` has them. All rows are written to FILE
(`target/drill/compare.jsonl`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))

from compared import CLIENTS, FAILURES, play
from places import Gateway

ROOT = Path(__file__).resolve().parents[2]


class Row(NamedTuple):
    """One client, one failure, without or with."""

    client: str
    failure: str
    #: "without" or "with".
    how: str
    requests: int
    seconds: float
    saw: str


def rows(gateway: Gateway) -> list[Row]:
    """All rows of the Python clients, four at a time."""
    cases = [(client, failure, how) for failure in FAILURES for client in CLIENTS for how in ("without", "with")]

    def one(case: tuple[str, str, str]) -> Row | None:
        client, failure, how = case
        drill = "/".join(case)
        seen = play(client, failure, how, gateway.url, drill)
        return None if seen is None else Row(*case, gateway.counts().get(drill, 0), *seen)

    with ThreadPoolExecutor(4) as pool:
        return [row for row in pool.map(one, cases) if row is not None]


def others(program: str) -> list[Row]:
    """The rows of another language's clients."""
    printed = subprocess.run(["node", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [Row(**json.loads(line)) for line in printed.splitlines()]


def table(found: Iterable[Row]) -> str:
    """The rows as Markdown: a line for each client and failure, without beside with."""
    pairs: dict[tuple[str, str], dict[str, Row]] = {}
    for each in found:
        pairs.setdefault((each.failure, each.client), {})[each.how] = each
    lines = [
        "| failure | client | without: requests | s | what was seen | with: requests | s | what was seen |",
        "| --- | --- | ---: | ---: | --- | ---: | ---: | --- |",
    ]
    last = ""
    for (failure, client), both in pairs.items():
        cells = [failure if failure != last else "", client]
        for row in (both.get("without"), both.get("with")):
            cells += [str(row.requests), f"{row.seconds:.1f}", row.saw] if row else ["", "", ""]
        lines.append(f"| {' | '.join(cells)} |")
        last = failure
    return "\n".join(lines)


def main() -> None:
    """Plays everything and prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--gateway", type=Path, default=ROOT / "target" / "release" / "gateway")
    parser.add_argument("--out", type=Path, default=ROOT / "target" / "drill" / "compare.jsonl")
    asked = parser.parse_args()
    with Gateway(asked.gateway) as gateway:
        found = rows(gateway)
    for program in asked.programs:
        found += others(program)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text("".join(json.dumps(row._asdict()) + "\n" for row in found), encoding="utf-8")
    order = {failure: number for number, failure in enumerate(FAILURES)}
    print(table(sorted(found, key=lambda row: order.get(row.failure, len(order)))))


if __name__ == "__main__":
    main()
