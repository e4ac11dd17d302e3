"""What derives from a wrapped client, what its user's hooks see, and the clients of its targets."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import httpx2
import openai
import pytest
from at_gateway import ANSWER, Drill
from sdk_clients import MODEL, QUICK, SDKS, completion, messages, run

import reprieve
from reprieve import ConfigError, Policy, trace_of


@pytest.fixture
def client(drill: Drill) -> openai.OpenAI:
    made: openai.OpenAI = SDKS["openai"].make(drill)
    return reprieve.wrap(made, QUICK)


def finished(answer: Any) -> Any:
    return run(answer) if asyncio.iscoroutine(answer) else answer


STAINLESS = ["openai", "azure", "anthropic"]


# --- derived clients -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in SDKS if name.split()[0] in STAINLESS])
@pytest.mark.parametrize("way", ["copy", "with_options"])
def test_derived_clients_stay_wrapped(drill: Drill, name: str, way: str) -> None:
    sdk = SDKS[name]
    derived = getattr(reprieve.wrap(sdk.make(drill), QUICK), way)(timeout=7)
    derived = derived.with_options(default_headers={"x-more": "1"})
    assert (derived.timeout, derived.max_retries) == (7, 0)
    assert sdk.asked(derived, "#[500,500,ok]") == ANSWER
    assert drill.played() == ["500", "500", "ok"]


@pytest.mark.parametrize("name", [name for name in SDKS if name.split()[0] in STAINLESS])
def test_retries_beside_the_policy_are_refused(drill: Drill, name: str) -> None:
    client = reprieve.wrap(SDKS[name].make(drill), QUICK)
    for way in (client.copy, client.with_options):
        with pytest.raises(ConfigError, match=r"max_retries: 5 is not allowed.*max_attempts in the policy"):
            way(max_retries=5)
    with pytest.raises(ConfigError, match="max_retries: 1 is not allowed"):
        client.max_retries = 1
    with pytest.raises(ConfigError, match="max_retries: 4 is not allowed"):
        finished(client.post("/chat/completions", cast_to=object, body={}, options={"max_retries": 4}))
    assert client.max_retries == 0
    assert drill.visits() == []


def test_no_retries_means_one_attempt(client: openai.OpenAI, drill: Drill) -> None:
    """The SDK's own helpers ask for it where a request must not be repeated."""
    with pytest.raises(openai.InternalServerError) as caught:
        completion(client.with_options(max_retries=0), "#[500]")
    trace = trace_of(caught.value)
    assert trace is not None
    assert len(trace.receipts) == len(drill.visits()) == 1


def test_raw_responses_run_under_the_policy_and_tell_their_usage(drill: Drill) -> None:
    lines: list[str] = []
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK, sink=lines.append)
    raw = completion(client.with_raw_response)
    assert raw.parse().choices[0].message.content == ANSWER
    with client.chat.completions.with_streaming_response.create(
        model=MODEL, messages=messages("#[503,ok]")
    ) as streamed:
        assert streamed.parse().choices[0].message.content == ANSWER
    assert sorted(drill.played()) == ["500", "503", "ok", "ok"]
    ends = [record for line in lines if (record := json.loads(line)).get("record")]
    assert [end["output_tokens"] for end in ends] == [9, None], "what has not been read tells nothing"


def test_every_endpoint_is_covered(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK)
    answer = client.responses.create(model=MODEL, input="#[500,ok]")
    assert answer.output_text == ANSWER
    parsed = client.chat.completions.parse(model=MODEL, messages=messages("#[502,ok]"))
    assert parsed.choices[0].message.content == ANSWER
    plain = client.post("/chat/completions", cast_to=object, body={"model": MODEL, "messages": messages("#[504,ok]")})
    assert plain["usage"]["completion_tokens"] == 9  # type: ignore[index]
    other = reprieve.wrap(SDKS["anthropic"].make(drill), QUICK)
    answered = other.beta.messages.create(model=MODEL, max_tokens=9, messages=messages("#[529,ok]"))
    assert answered.content[0].text == ANSWER
    assert sorted(drill.played()) == ["500", "502", "504", "529", "ok", "ok", "ok", "ok"]


def test_with_blocks_close_what_they_share(drill: Drill) -> None:
    made = SDKS["openai"].make(drill)
    with reprieve.wrap(made, QUICK) as client:
        assert completion(client).choices[0].message.content == ANSWER
    assert made.is_closed()


# --- what users have hung into the client ----------------------------------------------------------------------------


def test_the_records_say_what_wrapping_changed(drill: Drill) -> None:
    changes = {
        "openai": r"openai [\d.]+: max_retries 2 -> 0, timeouts -> at most the attempt's, Idempotency-Key -> .*",
        "anthropic async": r"anthropic [\d.]+: max_retries 2 -> 0, .*",
        "genai": r"google-genai [\d.]+: no retries -> 1 attempt, .*",
        "bedrock": r"botocore [\d.]+: retries of mode standard -> none, .*",
    }
    for name, expected in changes.items():
        lines: list[str] = []
        client = reprieve.wrap(SDKS[name].make(drill), QUICK, idempotency=True, sink=lines.append)
        SDKS[name].asked(client, "hello")
        assert re.fullmatch(expected, json.loads(lines[-1])["client"])


def test_hooks_fire_once_for_each_attempt(drill: Drill) -> None:
    asked: list[str] = []
    answered: list[int] = []
    hooks: Any = {
        "request": [lambda request: asked.append(request.headers["x-stainless-retry-count"])],
        "response": [lambda response: answered.append(response.status_code)],
    }
    http = httpx2.Client(event_hooks=hooks)
    client = reprieve.wrap(SDKS["openai"].make(drill, http_client=http), QUICK)
    assert completion(client, "#[500,429,ok]").choices[0].message.content == ANSWER
    assert asked == ["0", "0", "0"], "nothing in the client counts as a retry of its own"
    assert answered == [500, 429, 200]
    async_hooks: list[int] = []

    async def hook(response: Any) -> None:
        async_hooks.append(response.status_code)

    async_http = httpx2.AsyncClient(event_hooks={"response": [hook]})
    awaited = reprieve.wrap(SDKS["anthropic async"].make(drill, http_client=async_http), QUICK)
    assert SDKS["anthropic async"].asked(awaited, "#[500,ok]") == ANSWER
    assert async_hooks == [500, 200]


def test_middleware_of_the_sdk_runs_once_for_each_attempt(drill: Drill) -> None:
    seen: list[int] = []

    def middleware(request: Any, call_next: Any) -> Any:
        seen.append(request.retries_taken)
        return call_next(request)

    client = reprieve.wrap(SDKS["anthropic"].make(drill, middleware=[middleware]), QUICK)
    assert SDKS["anthropic"].asked(client, "#[500,ok]") == ANSWER
    assert seen == [0, 0]


def test_a_clients_own_trace_listener_is_kept(drill: Drill) -> None:
    heard: list[str] = []

    def listen(request: Any) -> None:
        assert callable(request.extensions["trace"]), "ours is there, and calls on"

    http = httpx2.Client(event_hooks={"request": [listen]})
    client = reprieve.wrap(SDKS["openai"].make(drill, http_client=http), QUICK)
    completion(client)
    del heard


def test_timeouts_only_get_shorter(drill: Drill) -> None:
    seen: list[dict[str, float]] = []
    http = httpx2.Client(event_hooks={"request": [lambda request: seen.append(request.extensions["timeout"])]})
    made = SDKS["openai"].make(drill, http_client=http, timeout=httpx2.Timeout(900.0, connect=150))
    client = reprieve.wrap(made, {**QUICK, "connect_timeout": 200, "attempt_timeout": 250})
    completion(client, "hello")
    assert seen[-1] == {"connect": 150.0, "read": 250.0, "write": 250.0, "pool": 250.0}
    completion(client, "hello", timeout=240)
    assert seen[-1] == {"connect": 200.0, "read": 240.0, "write": 240.0, "pool": 240.0}
    completion(reprieve.wrap(made, {"total_timeout": "1h"}), "hello")
    assert seen[-1] == {"connect": 150.0, "read": 900.0, "write": 900.0, "pool": 900.0}
    # What is left of the call bounds the last attempt.
    completion(reprieve.wrap(made, {**QUICK, "total_timeout": 400}), "hello")
    assert 300 < seen[-1]["read"] <= 400


def test_an_idempotency_key_of_the_users_own_is_kept(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK, idempotency=True)
    completion(client, extra_headers={"idempotency-key": "mine"})
    assert [visit["idempotency-key"] for visit in drill.visits()] == ["mine", "mine"]


# --- targets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["openai", "openai async", "anthropic", "bedrock"])
def test_a_target_has_a_client_of_its_own(drill: Drill, origin: str, name: str) -> None:
    sdk, nowhere = SDKS[name], Drill(f"{origin}/nowhere")
    lines: list[str] = []
    policy = Policy.preset("llm").replace(backoff={"base": 0.01})
    clients = {"backup": sdk.make(drill)}
    client = reprieve.wrap(sdk.make(nowhere), policy, clients=clients, sink=lines.append)
    assert sdk.asked(client, "#[500,ok]") == ANSWER
    targets = [record["target"] for line in lines if "attempt" in (record := json.loads(line))]
    assert targets == ["primary", "backup", "backup"]
    assert drill.played() == ["500", "ok"]


def test_clients_for_targets_are_checked(drill: Drill) -> None:
    policy = Policy.preset("llm")
    make = SDKS["openai"].make
    with pytest.raises(ConfigError, match=r"clients\.spare"):
        reprieve.wrap(make(drill), policy, clients={"spare": make(drill)})
    with pytest.raises(ConfigError, match=r"^clients: 3 is not allowed; it takes a mapping from a target's id"):
        reprieve.wrap(make(drill), policy, clients=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"clients\.backup: a Anthropic is not allowed; it takes a OpenAI"):
        reprieve.wrap(make(drill), policy, clients={"backup": SDKS["anthropic"].make(drill)})
