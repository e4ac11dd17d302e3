"""The drill fails when it should: whatever it expects, expecting something else is noticed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from check import differences, hidden
from clients import Clients
from drill import HERE, TARGET, Played, play, rows_of
from places import FullBacklog, Gateway
from play import Json, drill_id

GATEWAY = TARGET / "release" / "gateway"
DOCUMENT: Json = json.loads((HERE.parent / "scenarios.json").read_text(encoding="utf-8"))


def drilled(document: Json, retries: int = 0) -> tuple[list[Played], dict[str, int]]:
    """Plays scenarios, and answers the gateway's count of requests as well."""
    with ExitStack() as stack:
        gateway, backlog = stack.enter_context(Gateway(GATEWAY)), stack.enter_context(FullBacklog())
        clients = Clients(retries)
        stack.callback(clients.close)
        return list(play(document, clients, gateway, backlog)), gateway.counts()


def only(id: str) -> Json:
    return {**DOCUMENT, "scenarios": [deepcopy(s) for s in DOCUMENT["scenarios"] if s["id"] == id]}


@pytest.fixture(scope="module")
def played() -> list[Played]:
    return drilled(DOCUMENT)[0]


def altered(expected: Any) -> Iterator[Any]:
    """The same expectation with something else in each of its places."""
    if isinstance(expected, dict):
        for name, value in expected.items():
            for other in altered(value):
                yield {**expected, name: other}
    elif isinstance(expected, list) and isinstance(expected[0], dict):
        yield expected[1:]
        for place, value in enumerate(expected):
            for other in altered(value):
                yield [*expected[:place], other, *expected[place + 1 :]]
    elif isinstance(expected, list) and isinstance(expected[0], str):
        yield expected[1:]
    elif isinstance(expected, list) and expected[1] is None:
        yield [expected[0] + 3_600_000, None]
    elif isinstance(expected, list):
        yield [expected[1] + 10_000, expected[1] + 20_000]
        yield [expected[0] - 20_000, expected[0] - 10_000]
    elif isinstance(expected, bool):
        yield not expected
    elif isinstance(expected, int):
        yield expected + 1
    elif isinstance(expected, str):
        yield "~^something else$" if expected.startswith("~") else f"{expected}, or so"
    else:
        yield "something"


def test_every_expectation_can_fail(played: list[Played]) -> None:
    tried = 0
    for step, seen, _ in (row for one in played for row in rows_of(one)):
        assert [differences(step["expect"], one) for one in seen] == [[] for _ in seen], step["title"]
        for other in altered(step["expect"]):
            assert all(differences(other, one) for one in seen), f"{step['title']}: {other} is not noticed"
            tried += 1
    assert tried > 200


def test_a_record_that_is_missing_is_noticed(played: list[Played]) -> None:
    for step, seen, _ in (row for one in played for row in rows_of(one)):
        for one in seen:
            first, *others = one.calls
            # Of an attempt: whether a call was refused first depends on who of several came first.
            kept = [line for line in first.lines if not json.loads(line).get("attempt")]
            lost = replace(one, calls=[replace(first, lines=kept), *others])
            assert differences(step["expect"], lost), step["title"]


def test_retries_that_a_client_makes_by_itself_are_noticed() -> None:
    [one], counts = drilled(only("always-500"), retries=1)
    for step, seen, _ in rows_of(one):
        for client in seen:
            found = " ".join(differences(step["expect"], client))
            assert "requests to primary: expected 2, seen 4" in found
            assert "x-stainless-retry-count: expected 0, seen 1" in found
            assert "4 requests with idempotency key" in found
            id = drill_id(one.scenario, client.client)
            assert hidden({id: 2}, counts)
            assert not hidden({id: 4}, {id: counts[id]})


def test_the_command_fails_when_something_differs(tmp_path: Path) -> None:
    document = only("fine")
    [scenario] = document["scenarios"]
    other = deepcopy(scenario) | {"id": "other", "title": "not so fine"}
    other["expect"] |= {"attempts": 2, "receipts": []}
    document["scenarios"] = [scenario, other]
    (tmp_path / "scenarios.json").write_text(json.dumps(document))

    def run(*arguments: str) -> tuple[int, list[str]]:
        command = [sys.executable, str(HERE / "drill.py"), "--scenarios", str(tmp_path / "scenarios.json")]
        done = subprocess.run(
            [*command, "--out", str(tmp_path), *arguments], capture_output=True, text=True, timeout=600
        )
        return done.returncode, done.stdout.splitlines()

    code, lines = run()
    assert code == 1
    ends = {line[:11].strip(): line[-4:] for line in lines if line[-4:] in ("PASS", "FAIL")}
    assert ends == {"fine": "PASS", "not so fine": "FAIL", "no hidden r": "PASS"}
    assert "    anthropic async: attempts: expected 2, seen 1" in lines
    results = json.loads((tmp_path / "python.json").read_text())["rows"]
    assert [row["pass"] for row in results] == [True] * 4 + [False] * 4 + [True]
    receipts = [json.loads(line) for line in (tmp_path / "python-receipts.jsonl").read_text().splitlines()]
    assert [receipt.get("record") for receipt in receipts] == [None, "call_ended"] * 8

    code, lines = run("--only", "fine")
    assert code == 0
    assert "5 results" in lines[-1]
    assert run("--only", "unheard-of")[0] == 2
