"""The HTTP layers: six clients at the gateway, each with the same questions. What is counted is what arrived there."""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import requests
from at_gateway import NEVER, OFTEN, Drill, cut_then
from failing import at_once
from http_clients import CLIENTS, Ask, Client, Seen

import reprieve
from reprieve import CircuitOpen, ConfigError, Policy, RetryExhausted
from reprieve.integrations import httpx as for_httpx
from reprieve.integrations import requests as for_requests

ASYNC = {"httpx async", "httpx2 async", "aiohttp"}


@pytest.fixture(params=CLIENTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def client(name: str) -> Client:
    return CLIENTS[name]


def ask(drill: Drill, marker: str, method: str = "GET", *, sse: bool = False, **fields: Any) -> Ask:
    address = f"{drill.origin}/any?q={quote(f'#[{marker}]')}{'&stream=true' if sse else ''}"
    fields["headers"] = {**drill.headers, **fields.get("headers", {})}
    return Ask(address, method, stream=sse, **fields)


class TestStatuses:
    def test_a_failing_status_is_tried_again(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "503,500,ok"), at_once())
        assert (seen.status, seen.kinds) == (200, ["overloaded", "server_error", None])
        assert b"The gateway answers" in seen.body
        assert seen.end == ("success", None)
        assert drill.played() == ["503", "500", "ok"]

    def test_the_last_response_is_what_a_call_ends_with(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "503"), at_once())
        assert (seen.error, seen.status) == (None, 503)
        assert b'"error"' in seen.body
        assert seen.end == ("failure", "attempts_exhausted")
        assert len(drill.visits()) == 3

    def test_of_a_stream_as_well(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "503", sse=True), at_once())
        assert (seen.status, seen.end) == (503, ("failure", "attempts_exhausted"))
        assert b'"error"' in seen.body

    def test_what_never_helps_is_not_tried_again(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "404"), at_once())
        assert (seen.status, seen.end) == (404, ("failure", "not_retryable"))
        assert len(drill.visits()) == 1

    def test_the_body_says_what_a_status_does_not(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "quota"), at_once())  # a 429 that no waiting cures
        assert (seen.status, seen.kinds) == (429, ["billing"])
        assert len(drill.visits()) == 1

    def test_a_retry_after_is_honoured(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "retry-ms=120"), at_once(retry_after={"spread": 0}))
        first = seen.receipts[0]
        assert (first["retry_after_ms"], first["delay_ms"]) == (120, 120)
        times = [visit["at_ms"] for visit in drill.visits()]
        assert times[1] - times[0] >= 120

    def test_wrapped_ends_in_an_exception(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "503"), at_once().bind(on_give_up="wrapped"))
        assert isinstance(seen.error, RetryExhausted)
        assert seen.error.attempts == 3

    def test_a_predicate_sees_the_response(self, client: Client, drill: Drill) -> None:
        said: list[Any] = []

        def classify(error: Any) -> str | None:
            said.append((error.status_code, error.response is not None, b"error" in error.body))
            return "conflict"

        seen = client(ask(drill, "404,ok"), at_once().bind(classify=classify))
        assert (seen.status, said) == (200, [(404, True, True)])


class TestMethods:
    def test_a_post_that_may_have_had_an_effect_is_not_sent_again(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "503", "POST", content=b"x"), at_once())
        assert (seen.status, seen.end) == (503, ("failure", "unsafe_to_repeat"))
        assert len(drill.visits()) == 1

    def test_one_that_cannot_have_had_an_effect_is(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "429,ok", "POST", content=b"x"), at_once())
        assert (seen.status, len(drill.visits())) == (200, 2)

    def test_one_that_is_named_is(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "503,ok", "POST", content=b"x"), at_once(), methods=["post"])
        assert (seen.status, len(drill.visits())) == (200, 2)

    def test_one_with_an_idempotency_key_is(self, client: Client, drill: Drill) -> None:
        keyed = {"Idempotency-Key": "k1"}
        seen = client(ask(drill, "reset,ok", "POST", content=b"x", headers=keyed), at_once())
        assert (seen.status, len(drill.visits())) == (200, 2)
        assert {visit["idempotency-key"] for visit in drill.visits()} == {"k1"}

    def test_one_that_is_given_its_key_is(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "500,ok", "POST", content=b"x"), at_once(), idempotency_header="Idempotency-Key")
        assert (seen.status, len(drill.visits())) == (200, 2)
        assert seen.trace is not None
        assert seen.trace.ended is not None
        assert {visit["idempotency-key"] for visit in drill.visits()} == {seen.trace.ended["idempotency_key"]}

    def test_an_unsafe_policy_has_the_last_word(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "503,ok"), at_once(side_effects="unsafe"), methods=["GET"])
        assert (seen.status, seen.end) == (503, ("failure", "unsafe_to_repeat"))

    @pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
    def test_idempotent_methods(self, client: Client, drill: Drill, method: str) -> None:
        seen = client(ask(drill, "reset,ok", method), at_once())
        visits = [visit["method"] for visit in drill.visits()]
        if method == "OPTIONS":  # the gateway takes that for a preflight, and plays nothing
            assert seen.status == 204
        else:
            assert (seen.status, visits) == (200, [method, method])

    def test_a_refused_connection_is_tried_again_whatever_the_method(self, client: Client) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            nowhere = f"http://127.0.0.1:{unused.getsockname()[1]}"
            seen = client(Ask(nowhere, "POST", content=b"x"), at_once())
        assert seen.kinds == ["transport"] * 3
        assert seen.end == ("failure", "attempts_exhausted")

    def test_the_note_says_how_to_have_it_sent_again(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "reset", "POST"), at_once())
        assert seen.error is not None
        assert seen.end == ("failure", "unsafe_to_repeat")
        assert "name it in `methods`, or send an Idempotency-Key" in str(_notes(seen.error))


def _notes(error: BaseException | None) -> list[str]:
    """The notes along its causes: requests makes an exception of its own out of one that broke in a body."""
    notes: list[str] = []
    while error is not None:
        notes += getattr(error, "__notes__", [])
        error = error.__cause__ or error.__context__
    return notes


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

    def test_a_file_is_rewound_to_where_it_stood(self, name: str, client: Client, drill: Drill, tmp_path: Path) -> None:
        if name in {"httpx async", "httpx2 async"}:
            pytest.skip("these take no files")
        path = tmp_path / "upload"
        path.write_bytes(b"skipped" + b"y" * 100_000)
        with path.open("rb") as file:
            file.seek(0 if name in {"httpx", "httpx2"} else 7)  # httpx announces the whole file, wherever it stands
            seen = client(ask(drill, "429,429,ok", "POST", content=file), at_once(), max_body=10)
        assert seen.status == 200
        assert _bodies(drill) in ([100_000] * 3, [100_007] * 3)

    def test_a_file_that_cannot_be_rewound_is_kept(self, name: str, client: Client, drill: Drill) -> None:
        if name in {"httpx async", "httpx2 async"}:
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


@pytest.mark.parametrize("name", [name for name in CLIENTS if name != "requests"])  # which sees the first byte alone
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

    def test_the_first_content_comes_when_it_arrives(self, name: str, client: Client, drill: Drill) -> None:
        held = 0 if name == "aiohttp" else 1  # a piece of its own, where pieces are kept
        seen = client(ask(drill, "sse-stall=1", sse=True, most=1 + held), at_once())
        assert b"The" in seen.body


class TestTime:
    def test_an_attempt_is_over_at_its_timeout(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, f"{NEVER},ok"), at_once(attempt_timeout=0.3, max_attempts=OFTEN))
        assert (seen.status, set(seen.kinds[:-1]), seen.kinds[-1]) == (200, {"timeout"}, None)
        assert seen.receipts[0]["latency_ms"] >= 290
        assert cut_then(drill.played(), "ok")

    def test_it_ends_as_a_timeout_of_the_client(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, NEVER), at_once(attempt_timeout=0.2, max_attempts=2))
        names = {kind.__name__ for kind in type(seen.error).__mro__}
        assert names & {"TimeoutException", "Timeout", "ServerTimeoutError"}
        assert seen.kinds == ["timeout", "timeout"]
        assert len(drill.visits()) <= 2

    def test_a_timeout_of_the_client_is_never_raised(self, name: str, client: Client, drill: Drill) -> None:
        if name == "aiohttp":
            pytest.skip("a middleware does not see it")
        seen = client(ask(drill, f"{NEVER},ok", timeout=0.3), at_once(attempt_timeout=600, max_attempts=OFTEN))
        assert (seen.status, set(seen.kinds[:-1]), seen.kinds[-1]) == (200, {"timeout"}, None)
        assert cut_then(drill.played(), "ok")

    def test_the_time_left_bounds_the_last_attempt(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, NEVER), at_once(total_timeout=0.5))
        assert seen.end in {("failure", "deadline_exceeded"), ("failure", "attempts_exhausted")}
        assert set(seen.kinds) == {"timeout"}


class TestLayers:
    def test_each_redirect_is_a_request_of_its_own(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, "redirect,503,ok"), at_once(max_attempts=2))
        assert (seen.status, drill.played()) == (200, ["redirect", "503", "ok"])

    def test_an_outer_call_does_not_multiply(self, client: Client, drill: Drill) -> None:
        def outer() -> Seen:
            seen = client(ask(drill, "reset"), at_once())
            assert seen.error is not None
            raise seen.error

        result = at_once().execute(outer)
        assert len(drill.visits()) == 3
        assert (result.stop_reason, result.attempts) == ("attempts_exhausted", 1)

    def test_an_outer_attempt_bounds_it(self, client: Client, drill: Drill) -> None:
        seen = Policy(attempt_timeout=0.4).call(lambda: client(ask(drill, NEVER), at_once()))
        assert seen.end[0] == "failure"
        assert seen.receipts[0]["outer_trace_id"] is not None

    def test_guards_are_shared_by_all_requests(self, client: Client, drill: Drill) -> None:
        policy = at_once(breaker={"consecutive_failures": 2}, max_attempts=1)
        for method in ("GET", "POST"):
            assert client(ask(drill, "500", method), policy).status == 500
        seen = client(ask(drill, "500"), policy)
        assert isinstance(seen.error, CircuitOpen)
        assert len(drill.visits()) == 2

    def test_an_event_cancels(self, client: Client, drill: Drill) -> None:
        event = threading.Event()
        event.set()
        seen = client(ask(drill, "ok"), at_once().bind(cancel=event))
        assert isinstance(seen.error, reprieve.CallCancelled)
        assert drill.visits() == []

    def test_calls_of_many_threads(self, client: Client, origin: str) -> None:
        policy = at_once()
        drills = [Drill(origin) for _ in range(8)]
        with ThreadPoolExecutor(8) as threads:
            statuses = list(threads.map(lambda drill: client(ask(drill, "503,ok"), policy).status, drills))
        assert statuses == [200] * 8
        assert [len(drill.visits()) for drill in drills] == [2] * 8


class TestBadInput:
    @pytest.mark.parametrize(
        ("policy", "layer", "field"),
        [
            (Policy.preset("llm"), {}, "targets"),
            (Policy(stream={"mode": "restart"}), {}, "stream.mode"),
            (Policy(stream={"mode": "resume"}), {}, "stream.mode"),
            (Policy(hedge={"after": 1}), {}, "hedge"),
            (Policy(), {"methods": "POST"}, "methods"),
            (Policy(), {"idempotency_header": 1}, "idempotency_header"),
            (Policy(), {"max_body": -1}, "max_body"),
            (Policy(), {"max_body": True}, "max_body"),
            ({"max_attempts": 3}, {}, "policy"),
            ("no such preset", {}, "preset"),
        ],
    )
    def test_what_a_request_cannot_follow(
        self, client: Client, drill: Drill, policy: Any, layer: dict[str, Any], field: str
    ) -> None:
        with pytest.raises(ConfigError) as raised:
            client(ask(drill, "ok"), policy, **layer)
        assert raised.value.field == field

    def test_a_preset_by_name(self, client: Client, drill: Drill) -> None:
        assert client(ask(drill, "ok"), "interactive").status == 200

    @pytest.mark.parametrize(
        "wrapped",
        [
            lambda: for_httpx.RetryTransport(Policy(), httpx.HTTPTransport(retries=2)),
            lambda: for_httpx.AsyncRetryTransport(Policy(), httpx.AsyncHTTPTransport(retries=2)),
            lambda: for_requests.RetryAdapter(Policy(), requests.adapters.HTTPAdapter(max_retries=2)),
            lambda: for_httpx.RetryTransport(Policy(), for_httpx.RetryTransport(Policy())),
            lambda: for_requests.RetryAdapter(Policy(), for_requests.RetryAdapter(Policy())),
        ],
    )
    def test_two_engines_of_retries(self, wrapped: Callable[[], object]) -> None:
        with pytest.raises(ConfigError) as raised:
            wrapped()
        assert raised.value.field == "wrapped"
