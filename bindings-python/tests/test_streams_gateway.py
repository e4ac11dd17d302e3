"""Streams of the real clients on the fault gateway, sync and async, in all modes; request counts are the gateway's."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import pytest
from at_gateway import NEVER, OFTEN, Drill, gateway, in_the_end
from stream_clients import CLIENTS, WORDS, Client

from reprieve import AttemptTimeout, Discard, Policy, current_attempt, trace_of
from reprieve.integrations.httpx2 import AsyncRetryTransport, RetryTransport

NOW = Policy(backoff={"base": 0, "max": 0}, jitter={"kind": "none"})
MODES = ("before_first_item", "buffered", "restart", "resume")


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with gateway() as found:
        for client in CLIENTS:  # they import much of themselves when they are first used
            take(found, client, NOW, "#[ok]")
        yield found


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> Client:
    found: Client = request.param
    return found


class Taken:
    """What a consumer has had of one stream."""

    def __init__(self, drill: Drill, client: Client) -> None:
        self.drill, self.client = drill, client
        self.items: list[Any] = []
        self.error: Exception | None = None
        self.stream: Any = None

    @property
    def words(self) -> list[str | int]:
        """The texts, and a number for each discard."""
        found = [item.count if isinstance(item, Discard) else self.client.text(item) for item in self.items]
        return [word for word in found if word]

    @property
    def kinds(self) -> list[str]:
        return [receipt["kind"] or receipt["outcome"] for receipt in self.stream.trace.receipts]

    @property
    def delivered(self) -> list[int]:
        return [receipt["delivered"] for receipt in self.stream.trace.receipts]


def take(
    origin: str, client: Client, policy: Any, marker: str, *, most: int | None = None, timeout: float = 900.0
) -> Taken:
    """Consumes a stream of this marker; there are as many requests as attempts."""
    drill = Drill(origin)
    taken = Taken(drill, client)
    opened = client.make(drill, timeout)
    stream: Any = policy.stream(lambda: opened(marker, said_so_far(client)))
    taken.stream = stream

    def enough(item: Any) -> bool:
        taken.items.append(item)
        return len(taken.items) == most

    async def later() -> None:
        try:
            async with stream:
                async for item in stream:
                    if enough(item):
                        break
        finally:
            await opened.aclose()

    try:
        if client.is_async:
            asyncio.run(later())
        else:
            with stream:
                for item in stream:
                    if enough(item):
                        break
    except Exception as error:
        taken.error = error
    finally:
        if not client.is_async:
            opened.close()
    requests, cut = len(drill.played()), taken.kinds.count("timeout")
    assert stream.attempts - cut <= requests <= stream.attempts, "what was cut may not have come so far"
    return taken


def said_so_far(client: Client) -> str:
    """What of the answer its consumer has had: nothing, but in mode `resume`."""
    attempt = current_attempt()
    assert attempt is not None
    return "".join(client.text(item) or "" for item in attempt.delivered)


# --- what fails before the first content is retried unseen ------------------------------------------------------------


@pytest.mark.parametrize(
    "marker", ["503", "reset", "sse-cut=0", "sse-eof=0", "sse-error=0", "sse-void", "sse-error-raw=0"]
)
def test_until_the_first_content_it_is_tried_again(origin: str, client: Client, marker: str) -> None:
    taken = take(origin, client, NOW, f"#[{marker},ok]")
    assert taken.error is None
    assert taken.words == WORDS
    assert taken.drill.played() == [marker, "ok"]
    assert taken.delivered[0] == 0
    assert taken.delivered[1] == len(taken.items)
    assert taken.kinds[1] == "success"
    receipt = taken.stream.trace.receipts[1]
    assert receipt["output_tokens"] == 9
    assert receipt["input_tokens"] > 0


def test_the_opening_comes_with_the_first_content_intact(origin: str, client: Client) -> None:
    taken = take(origin, client, NOW, "#[sse-pings=2]", most=client.opening + 1)
    assert [client.text(item) or "" for item in taken.items] == [""] * client.opening + ["The"]
    assert taken.kinds == ["cancelled"]


# --- and after it the mode decides -----------------------------------------------------------------------------------


@pytest.mark.parametrize("marker", ["sse-cut=2", "sse-eof=2", "sse-error=2", "sse-error-text=2", "sse-error-raw=2"])
@pytest.mark.parametrize("mode", MODES)
def test_a_stream_that_breaks(origin: str, client: Client, mode: str, marker: str) -> None:
    taken = take(origin, client, NOW.replace(stream={"mode": mode}), f"#[{marker},ok]")
    had = client.opening + 2
    if mode == "before_first_item":
        assert taken.words == WORDS[:2]
        assert taken.error is not None
        trace = trace_of(taken.error)
        assert trace is not None
        assert list(trace.delivered) == taken.items
        assert trace.receipts[0]["reason"] == "already_delivered"
        assert taken.delivered == [len(taken.items)]
        return
    assert taken.error is None
    assert taken.drill.played() == [marker, "ok"]
    assert taken.kinds[1] == "success"
    if mode == "buffered":
        assert taken.words == WORDS
        assert taken.delivered[0] == 0
    elif mode == "restart":
        assert taken.words[:2] == WORDS[:2]
        assert taken.words[3:] == WORDS
        assert taken.words[2] == taken.delivered[0] >= had
    else:
        assert taken.words == WORDS


def test_resume_goes_on_where_the_answer_broke(origin: str, client: Client) -> None:
    policy = NOW.replace(stream={"mode": "resume"}, max_attempts=5)
    taken = take(origin, client, policy, "#[sse-cut=2,sse-error=3,sse-eof=0,ok]")
    assert taken.words == WORDS
    assert taken.drill.played() == ["sse-cut=2", "sse-error=3", "sse-eof=0", "ok"]


def test_a_stream_that_starts_again_is_not_delivered_twice(origin: str, client: Client) -> None:
    taken = take(origin, client, NOW.replace(stream={"mode": "buffered"}), "#[sse-again=1,ok]")
    if client.name.startswith(("responses", "messages")):
        assert taken.words == WORDS
        assert taken.drill.played() == ["sse-again=1", "ok"]


# --- answers that are none -------------------------------------------------------------------------------------------


def test_an_answer_without_content_is_tried_again(origin: str, client: Client) -> None:
    taken = take(origin, client, NOW, "#[empty,ok]")
    assert taken.words == WORDS
    assert taken.kinds == ["invalid_output", "success"]


def test_a_filtered_answer_goes_to_the_backup_where_nothing_was_delivered(origin: str, client: Client) -> None:
    taken = take(origin, client, NOW, "#[filter]")
    assert taken.words == WORDS[:3]
    assert isinstance(taken.error, Exception)
    assert taken.kinds == ["content_filtered"]
    policy = NOW.replace(
        stream={"mode": "buffered"},
        fallback_on=["content_filtered"],
        targets=[{"id": "primary"}, {"id": "backup"}],
    )
    taken = take(origin, client, policy, "#[filter,ok]")
    assert taken.words == WORDS
    assert taken.kinds == ["content_filtered", "success"]


def test_a_truncated_answer_is_an_answer(origin: str, client: Client) -> None:
    taken = take(origin, client, NOW, "#[truncated]")
    assert (taken.error, taken.words, taken.kinds) == (None, WORDS[:3], ["success"])


def test_who_leaves_early_closes_the_connection(origin: str, client: Client) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        taken = take(origin, client, NOW, "#[sse-stall=3]", most=client.opening + 2)
    assert taken.words in (WORDS[:1], WORDS[:2])  # a manager has two events for each
    assert taken.kinds == ["cancelled"]
    assert taken.stream.trace.ended["reason"] == "cancelled"


# --- timers ----------------------------------------------------------------------------------------------------------


LATER = [client for client in CLIENTS if client.is_async]
NOT_LATER = [client for client in CLIENTS if not client.is_async]


@pytest.mark.parametrize("client", LATER, ids=lambda client: client.name)
@pytest.mark.parametrize(
    ("marker", "stream", "words", "had"),
    [
        ("sse-first=600000", {"first_item_timeout": 0.25}, "no first item within 0.25 s", 0),
        (NEVER, {"first_item_timeout": 0.25}, "no first item within 0.25 s", 0),
        ("sse-idle=0", {"first_item_timeout": 0.25}, "no first item within 0.25 s", 0),
        ("sse-stall=2", {"idle_timeout": 0.25}, "idle for 0.25 s", 2),
        ("sse-idle=2", {"idle_timeout": 0.25}, "idle for 0.25 s", 2),
        ("sse-stall=2", {"silence_timeout": 0.25}, "silent for 0.25 s", 2),
    ],
)
def test_timers_cut_async_streams(origin: str, client: Client, marker: str, stream: Any, words: str, had: int) -> None:
    policy = NOW.replace(max_attempts=1, stream=stream)
    taken = in_the_end(lambda: take(origin, client, policy, f"#[{marker}]"), lambda taken: len(taken.words) == had)
    assert isinstance(taken.error, AttemptTimeout)
    assert words in str(taken.error)
    assert taken.words == WORDS[:had]
    if marker == "sse-stall=2":
        policy = NOW.replace(max_attempts=OFTEN, stream={**stream, "mode": "restart"})
        taken = take(origin, client, policy, f"#[{marker},ok]")
        assert taken.words[-9:] == WORDS
        assert (set(taken.kinds[:-1]), taken.kinds[-1]) == ({"timeout"}, "success")


@pytest.mark.parametrize("client", NOT_LATER, ids=lambda client: client.name)
@pytest.mark.parametrize(("marker", "had"), [("sse-first=600000", 0), (NEVER, 0), ("sse-stall=2", 2)])
def test_a_clients_own_timeout_cuts_what_cannot_be_interrupted(
    origin: str, client: Client, marker: str, had: int
) -> None:
    policy = NOW.replace(max_attempts=OFTEN, stream={"mode": "restart"})
    taken = take(origin, client, policy, f"#[{marker},ok]", timeout=0.25)
    assert taken.words[-9:] == WORDS
    assert set(taken.kinds[:-1]) <= {"timeout", "stream_interrupted"}
    assert taken.kinds[-1] == "success"
    assert len(taken.kinds) > 1
    if len(taken.kinds) == 2:  # nothing else was cut
        assert taken.words[:had] == WORDS[:had]


def test_the_first_chunk_reaches_the_consumer_when_it_arrives(origin: str, client: Client) -> None:
    taken = take(origin, client, NOW, "#[sse-stall=1]", most=client.opening + 1)
    assert (taken.words, taken.error) == (WORDS[:1], None)


# --- bytes that a client hides ---------------------------------------------------------------------------------------


def hidden_pings(origin: str, marker: str, stream: Any, *, later: bool, told: bool) -> tuple[int, Exception | None]:
    """Consumes a stream of anthropic's client, which hides pings; `told`: its transport says when bytes have come."""
    drill, single = Drill(origin), Policy.preset("single")
    http: Any = None
    if later:
        http = httpx2.AsyncClient(transport=AsyncRetryTransport(single) if told else None)
    else:
        http = httpx2.Client(transport=RetryTransport(single) if told else None)
    kind: Any = anthropic.AsyncAnthropic if later else anthropic.Anthropic
    client = kind(
        base_url=origin, api_key="none", max_retries=0, timeout=900, default_headers=drill.headers, http_client=http
    )
    message = {"role": "user", "content": f"#[{marker}]"}
    opened = NOW.replace(max_attempts=1, stream=stream).stream(
        lambda: client.messages.create(model="m", max_tokens=9, messages=[message], stream=True)
    )

    async def consume() -> int:
        try:
            return len([item async for item in opened])
        finally:
            await client.close()

    try:
        return (asyncio.run(consume()) if later else len(list(opened))), None
    except Exception as error:
        return 0, error
    finally:
        if not later:
            client.close()


@pytest.mark.parametrize("later", [False, True], ids=["for", "async for"])
def test_a_transport_tells_of_bytes_that_are_no_events(origin: str, later: bool) -> None:
    count, error = in_the_end(
        lambda: hidden_pings(origin, "sse-pings=5", {"silence_timeout": 0.25}, later=later, told=True),
        lambda seen: seen[1] is None,
    )
    assert (count, error) == (14, None)
    _, error = hidden_pings(origin, "sse-idle=1", {"idle_timeout": 0.25}, later=later, told=True)
    assert isinstance(error, AttemptTimeout)
    assert "idle for 0.25 s" in str(error)
    _, error = hidden_pings(origin, "sse-idle=0", {"first_item_timeout": 0.25}, later=later, told=True)
    assert isinstance(error, AttemptTimeout)


def test_without_that_hidden_pings_are_silence(origin: str) -> None:
    _, error = hidden_pings(origin, "sse-pings=6000", {"silence_timeout": 0.25}, later=True, told=False)
    assert isinstance(error, AttemptTimeout)
    assert "silent for 0.25 s" in str(error)
