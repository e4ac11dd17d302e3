"""What requests and responses carry, under each of the HTTP layers: bodies that are sent again, bodies that break, a
model's stream of events."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from at_gateway import Drill
from failing import at_once
from http_clients import Client, ask, every_client, every_client_but

from reprieve import ConfigError


@every_client
class TestRequestBodies:
    def test_bytes_are_sent_again(self, client: Client, drill: Drill) -> None:
        client(ask(drill, "429,ok", "POST", content=b"ab" * 5000), at_once())
        assert _bodies(drill) == [10_000, 10_000]

    def test_what_can_be_sent_once_is_kept(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "429,ok", "POST", content=_generated(3)), at_once())
        assert (seen.error, _bodies(drill)) == (None, [3000, 3000])

    def test_what_is_too_long_to_be_kept_is_refused_before_it_is_sent(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "ok", "POST", content=_generated(3)), at_once(), max_body=2999)
        assert isinstance(seen.error, ConfigError)
        assert "raise `max_body`" in str(seen.error)
        assert drill.visits() == []

    def test_a_file_is_rewound_to_where_it_stood(self, client: Client, drill: Drill, tmp_path: Path) -> None:
        if client.name in {"httpx async", "httpx2 async"}:
            pytest.skip("these take no files")
        path = tmp_path / "upload"
        path.write_bytes(b"skipped" + b"y" * 100_000)
        with path.open("rb") as file:
            file.seek(
                0 if client.name in {"httpx", "httpx2"} else 7
            )  # httpx announces the whole file, wherever it stands
            seen = client(ask(drill, "429,429,ok", "POST", content=file), at_once(), max_body=10)
        assert seen.status == 200
        assert _bodies(drill) in ([100_000] * 3, [100_007] * 3)

    def test_a_file_that_cannot_be_rewound_is_kept(self, client: Client, drill: Drill) -> None:
        if client.name in {"httpx async", "httpx2 async"}:
            pytest.skip("these take no files")
        seen = client(ask(drill, "429,ok", "POST", content=_Pipe(b"z" * 5000)), at_once())
        assert (seen.status, _bodies(drill)) == (200, [5000, 5000])


class _Pipe(io.BufferedReader):
    """A file that only goes forward."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))

    def seekable(self) -> bool:
        return False

    def seek(self, *_: Any) -> int:
        raise io.UnsupportedOperation("seek")

    def tell(self) -> int:
        raise io.UnsupportedOperation("tell")

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")


def _generated(pieces: int) -> Iterator[bytes]:
    for _ in range(pieces):
        yield b"g" * 1000


def _bodies(drill: Drill) -> list[int]:
    """The length of each body that arrived; all are the same."""
    visits = drill.visits()
    assert len({visit["body_hash"] for visit in visits}) <= 1
    return [visit["body_length"] for visit in visits]


@every_client
class TestResponseBodies:
    def test_one_that_breaks_is_asked_for_again(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "cut=20,cut=0,ok"), at_once())
        assert (seen.status, seen.kinds) == (200, ["stream_interrupted", "stream_interrupted", None])
        assert seen.body.endswith(b"}")
        assert len(seen.body) > 400

    def test_one_that_always_breaks_ends_as_the_client_says(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "cut=20"), at_once())
        assert seen.error is not None
        assert type(seen.error).__name__ in {"RemoteProtocolError", "ChunkedEncodingError", "ClientPayloadError"}
        assert (len(drill.visits()), seen.end) == (3, ("failure", "attempts_exhausted"))

    def test_a_stream_is_passed_on_as_it_comes(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "sse-slow=30", sse=True), at_once())
        assert (seen.status, seen.end) == (200, ("success", None))
        assert seen.body.endswith(b"data: [DONE]\n\n")
        assert client(ask(drill, "sse-stall=3", sse=True, most=1), at_once()).body

    def test_one_that_breaks_after_its_first_bytes_is_not_repeated(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "sse-cut=2", sse=True), at_once())
        assert seen.error is not None
        assert seen.body
        assert (seen.kinds, seen.end) == (["stream_interrupted"], ("failure", "already_delivered"))
        assert seen.receipts[0]["delivered"] > 0
        assert len(drill.visits()) == 1

    def test_buffered_repeats_it_until_it_is_whole(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "sse-cut=2,ok", sse=True), at_once(stream={"mode": "buffered"}))
        assert (seen.error, seen.kinds, seen.end) == (None, ["stream_interrupted", None], ("success", None))
        assert seen.body.endswith(b"data: [DONE]\n\n")
        assert seen.body.count(b"[DONE]") == 1

    def test_a_reader_that_leaves_ends_the_call(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "sse-stall=1", sse=True, most=1), at_once())
        assert (seen.error, seen.end) == (None, ("cancelled", "cancelled"))


@every_client_but("requests")  # which sees the first byte alone
class TestEvents:
    """A model's stream of events: until its first content nothing has been delivered."""

    @pytest.mark.parametrize("broken", ["sse-error=0", "sse-cut=0", "sse-eof=0", "sse-void"])
    def test_what_fails_before_the_first_content_is_asked_for_again(
        self, client: Client, drill: Drill, broken: str
    ) -> None:
        seen = client(ask(drill, f"{broken},ok", sse=True), at_once())
        assert (seen.error, seen.end) == (None, ("success", None))
        assert seen.body.endswith(b"data: [DONE]\n\n")
        assert seen.body.count(b"[DONE]") == 1
        assert drill.played() == [broken, "ok"]

    def test_the_last_one_is_the_users_to_read(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "sse-error=0", sse=True), at_once())
        assert (seen.status, seen.error, seen.end) == (200, None, ("failure", "attempts_exhausted"))
        assert b'"error"' in seen.body
        assert len(drill.visits()) == 3

    def test_what_fails_later_is_the_users_as_well(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "sse-error=2", sse=True), at_once())
        assert (seen.status, seen.error) == (200, None)
        assert b'"error"' in seen.body
        assert len(drill.visits()) <= 3  # one, unless the error came in one piece with the content

    def test_buffered_sees_all_of_it(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "sse-error=2,sse-eof=3,ok", sse=True), at_once(stream={"mode": "buffered"}))
        assert (seen.error, seen.end) == (None, ("success", None))
        assert b'"error"' not in seen.body
        assert drill.played() == ["sse-error=2", "sse-eof=3", "ok"]

    def test_the_first_content_comes_when_it_arrives(self, client: Client, drill: Drill) -> None:
        held = 0 if client.name == "aiohttp" else 1  # a piece of its own, where pieces are kept
        seen = client(ask(drill, "sse-stall=1", sse=True, most=1 + held), at_once())
        assert b"The" in seen.body
