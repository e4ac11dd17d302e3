"""The HTTP layers: six clients at the gateway, each with the same questions. What is counted is what arrived there."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import httpx2
import pytest
import requests
from at_gateway import NEVER, OFTEN, Drill, cut_then
from failing import NO_WAIT, at_once
from http_clients import Ask, Client, Seen, ask, every_client

import reprieve
from reprieve import CircuitOpen, ConfigError, Policy, RetryExhausted
from reprieve.integrations import httpx as for_httpx
from reprieve.integrations import httpx2 as for_httpx2
from reprieve.integrations import requests as for_requests


@every_client
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


@every_client
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


@every_client
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

    def test_a_timeout_of_the_client_is_never_raised(self, client: Client, drill: Drill) -> None:
        if client.name == "aiohttp":
            pytest.skip("a middleware does not see it")
        seen = client(ask(drill, f"{NEVER},ok", timeout=0.3), at_once(attempt_timeout=600, max_attempts=OFTEN))
        assert (seen.status, set(seen.kinds[:-1]), seen.kinds[-1]) == (200, {"timeout"}, None)
        assert cut_then(drill.played(), "ok")

    def test_the_time_left_bounds_the_last_attempt(self, client: Client, drill: Drill) -> None:
        seen = client(ask(drill, NEVER), at_once(total_timeout=0.5))
        assert seen.end in {("failure", "deadline_exceeded"), ("failure", "attempts_exhausted")}
        assert set(seen.kinds) == {"timeout"}


@every_client
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
        assert seen.trace is not None
        assert seen.trace.ended is not None
        assert seen.trace.ended["outcome"] == "failure"
        assert seen.trace.ended["outer_trace_id"] is not None

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


@every_client
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
            (3, {}, "policy"),
            ({"max_attempt": 3}, {}, "max_attempt"),
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

    def test_the_fields_of_a_policy(self, client: Client, drill: Drill) -> None:
        assert client(ask(drill, "500,ok"), {"max_attempts": 2, **NO_WAIT}).status == 200
        assert drill.played() == ["500", "ok"]


def test_the_other_client_is_told_where_its_transport_is(drill: Drill) -> None:
    confused: Any = for_httpx.RetryTransport("interactive")
    message = r"client: one of httpx2 is not allowed; .* import the transport from reprieve\.integrations\.httpx2"
    with httpx2.Client(transport=confused) as client, pytest.raises(ConfigError, match=message):
        client.get(f"{drill.origin}/any", headers=drill.headers)
    other: Any = for_httpx2.AsyncRetryTransport("interactive")

    async def get() -> None:
        async with httpx.AsyncClient(transport=other) as client:
            await client.get(f"{drill.origin}/any", headers=drill.headers)

    with pytest.raises(ConfigError, match="client: one of httpx is not allowed"):
        asyncio.run(get())
    assert drill.visits() == []


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
def test_two_engines_of_retries_are_refused(wrapped: Callable[[], object]) -> None:
    with pytest.raises(ConfigError) as raised:
        wrapped()
    assert raised.value.field == "wrapped"
