"""The comparison's requests are those that each client is known to make; its seconds are its own affair."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from compared import CLIENTS, FAILURES
from drill import TARGET
from places import Gateway

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from compare import Row, rows, table

# By failure: what every client makes under its policy, and what each makes bare (the order of CLIENTS).
REQUESTS: dict[str, tuple[int, list[int]]] = {
    "wrong key": (1, [1, 1, 1, 1, 1]),
    "429, retry-after 2 s": (2, [2, 2, 1, 2, 1]),
    "overloaded three times": (4, [3, 3, 1, 3, 1]),
    "always 500, in a framework that tries 3 times": (3, [9, 9, 3, 9, 3]),
    "connection lost amid a stream": (2, [1, 1, 1, 1]),
    "stream cut after content": (2, [1, 1, 1, 1]),
}


@pytest.fixture(scope="module")
def found() -> Iterator[list[Row]]:
    with Gateway(TARGET / "release" / "gateway") as gateway:
        yield rows(gateway)


def test_every_row_is_there(found: list[Row]) -> None:
    assert set(REQUESTS) == set(FAILURES)
    assert len(found) == 2 * sum(len(bare) for _, bare in REQUESTS.values())


@pytest.mark.parametrize("failure", REQUESTS)
def test_requests(found: list[Row], failure: str) -> None:
    under_policy, bare = REQUESTS[failure]
    expected = {client: (count, under_policy) for client, count in zip(CLIENTS, bare, strict=False)}
    counted = {row.client: row.requests for row in found if (row.failure, row.how) == (failure, "without")}
    wrapped = {row.client: row.requests for row in found if (row.failure, row.how) == (failure, "with")}
    assert {client: (counted[client], wrapped[client]) for client in counted} == expected


def test_what_is_seen_with_a_policy(found: list[Row]) -> None:
    answered = {"429, retry-after 2 s", "overloaded three times", *(f for f, made in FAILURES.items() if made.stream)}
    for row in found:
        if row.how == "with":
            assert (row.saw == "the answer") == (row.failure in answered), row
        elif row.failure == "stream cut after content":
            assert row.saw == "3 words, as if that was all", row


def test_the_table_has_a_line_for_each_pair(found: list[Row]) -> None:
    lines = table(found).splitlines()
    assert len(lines) == 2 + len(found) // 2
    assert all(line.count("|") == 9 for line in lines)
