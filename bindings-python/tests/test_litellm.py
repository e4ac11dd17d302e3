"""LiteLLM under a policy: what is its own, beside what every framework is asked."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import frameworks
import httpx
import httpx2
import openai
import pytest
from at_gateway import ANSWER, NEVER, OFTEN, Drill, cut_then
from failing import at_once
from frameworks import litellm, of_litellm, user

from reprieve import Policy, Stream, trace_of
from reprieve.integrations.litellm import resilient


@pytest.mark.parametrize(
    ("name", "value"), [("num_retries", 2), ("max_retries", 3), ("fallbacks", ["other"]), ("retry_policy", object())]
)
def test_its_own_retries_are_refused(drill: Drill, name: str, value: Any) -> None:
    llm = resilient(at_once())
    with pytest.raises(ValueError, match=f"{name}: .* is not allowed; it takes nothing, or 0: the policy retries"):
        llm.completion(messages=user("Hello"), **of_litellm(drill), **{name: value})
    with pytest.raises(ValueError, match=name):
        asyncio.run(llm.acompletion(messages=user("Hello"), **of_litellm(drill), **{name: value}))
    assert drill.played() == []


def test_its_settings_are_looked_at_too(drill: Drill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litellm, "num_retries", 3)
    with pytest.raises(ValueError, match=r"litellm\.num_retries: 3 is not allowed"):
        resilient(at_once()).completion(messages=user("Hello"), **of_litellm(drill))


def test_zero_retries_may_be_asked_for(drill: Drill) -> None:
    llm = resilient(at_once(), fallbacks=[{**of_litellm(drill), "num_retries": 0}])
    answer = llm.completion(messages=user("#[500x3]"), num_retries=0, max_retries=0, **of_litellm(drill))
    assert answer.choices[0].message.content == ANSWER
    assert drill.played() == ["500", "500", "500", "ok"]


def test_a_fallback_by_name_gets_nothing_that_is_the_first_models(
    drill: Drill, origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Drill(origin)
    other.id = "default"  # where the first model's headers are not sent
    monkeypatch.setenv("OPENAI_BASE_URL", other.url)
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    with pytest.raises(litellm.NotFoundError, match="`model-2` does not exist"):
        resilient(at_once(), fallbacks=["openai/model-2"]).completion(messages=user("#[404]"), **of_litellm(drill))
    assert (drill.played(), other.played()) == (["404"], ["404"])


def test_the_name_of_a_fallback_is_no_list_of_them() -> None:
    model: Any = "openai/model-2"
    with pytest.raises(
        ValueError, match="fallbacks: 'openai/model-2' is not allowed; it takes a list of str or Mapping"
    ):
        resilient(at_once(), fallbacks=model)


@pytest.mark.parametrize("fallback", [{"api_key": "x"}, {"model": 7}])
def test_a_fallback_names_a_model(fallback: Any) -> None:
    with pytest.raises(ValueError, match=r'fallbacks: .* or arguments with a "model" among them'):
        resilient(at_once(), fallbacks=[fallback])


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("timeout", 0.4),
        ("timeout", "0.4"),
        ("timeout", httpx.Timeout(300, read=0.4)),
        ("timeout", httpx2.Timeout(300, read=0.4)),
        ("request_timeout", 0.4),
    ],
)
def test_a_timeout_of_the_callers_only_shortens(drill: Drill, name: str, own: Any) -> None:
    llm = resilient(at_once(attempt_timeout=300, max_attempts=OFTEN))
    answer = llm.completion(messages=user(f"#[{NEVER},ok]"), **{name: own}, **of_litellm(drill))
    assert answer.choices[0].message.content == ANSWER
    assert cut_then(drill.played(), "ok")


def test_so_does_one_of_its_settings(drill: Drill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(litellm, "request_timeout", 0.4)
    llm = resilient(at_once(attempt_timeout=300, max_attempts=OFTEN))
    answer = llm.completion(messages=user(f"#[{NEVER},ok]"), **of_litellm(drill))
    assert answer.choices[0].message.content == ANSWER
    assert cut_then(drill.played(), "ok")


@pytest.mark.parametrize("asked", [{"timeout": 3600}, {"timeout": httpx.Timeout(None)}, {"stream_timeout": 3600}])
def test_no_timeout_is_longer_than_the_attempts(drill: Drill, asked: Any) -> None:
    llm = resilient(at_once(attempt_timeout=0.4, max_attempts=OFTEN))
    stream = llm.completion(messages=user(f"#[{NEVER},ok]"), stream=True, **asked, **of_litellm(drill))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == ANSWER
    assert cut_then(drill.played(), "ok")


def test_a_silent_stream_is_left(drill: Drill) -> None:
    llm = resilient(at_once(max_attempts=1, stream={"silence_timeout": 0.4}))
    stream = llm.completion(messages=user("#[sse-stall=2]"), stream=True, **of_litellm(drill))
    with pytest.raises(litellm.Timeout):
        list(stream)
    assert drill.played() == ["sse-stall=2"]


#: Providers that LiteLLM asks with clients of its own, and where it finds them at the gateway.
PROVIDERS = {
    "openai/m": "/v1",
    "azure/m": "",
    "anthropic/m": "",
    "gemini/m": "/v1beta/models/m",
    "hosted_vllm/m": "/v1",
    "openai/responses/m": "/v1",
}


@pytest.mark.parametrize("model", PROVIDERS)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_the_server_asks_for_is_waited_for(drill: Drill, model: str, asynchronous: bool) -> None:
    request: dict[str, Any] = {"api_key": "none", "extra_headers": drill.headers, "api_version": "2024-10-21"}
    request |= {"model": model, "api_base": drill.origin + PROVIDERS[model], "messages": user("#[retry-after=99,ok]")}
    llm = resilient(at_once(retry_after={"max": 98}))
    with pytest.raises(litellm.RateLimitError) as raised:
        asyncio.run(llm.acompletion(**request)) if asynchronous else llm.completion(**request)
    trace = trace_of(raised.value)
    assert trace is not None
    assert trace.receipts[0]["retry_after_ms"] == 99_000
    assert drill.played() == ["retry-after=99"]


@pytest.mark.parametrize("model", PROVIDERS)
@pytest.mark.parametrize("marker", ["500", "reset", None])
def test_no_answer_is_no_server_error(drill: Drill, model: str, marker: str | None) -> None:
    """LiteLLM gives both the status 500."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
        request: dict[str, Any] = {"api_key": "none", "extra_headers": drill.headers, "api_version": "2024-10-21"}
        request |= {"model": model, "api_base": (drill.origin if marker else nobody) + PROVIDERS[model]}
        with pytest.raises(openai.APIError) as raised:
            resilient(at_once(side_effects="unsafe")).completion(messages=user(f"#[{marker or 'ok'}]"), **request)
    trace = trace_of(raised.value)
    assert trace is not None
    kinds = [receipt["kind"] for receipt in trace.receipts]
    assert kinds == (["transport"] * 3 if marker is None else ["server_error" if marker == "500" else "transport"])


def test_a_request_is_prepared_for_its_target(drill: Drill) -> None:
    asked: list[tuple[str, str]] = []

    def prepare(request: dict[str, Any], target: str) -> dict[str, Any]:
        asked.append((target, request["model"]))
        return {**request, "max_tokens": 100 if target == "backup" else 1000}

    llm = resilient(at_once(max_attempts=1).bind(prepare=prepare), fallbacks=[of_litellm(drill)])
    assert llm.completion(messages=user("#[500,ok]"), **of_litellm(drill)).choices[0].message.content == ANSWER
    assert asked == [("primary", "openai/model-1"), ("backup", "openai/model-1")]
    first, second = (visit["body_length"] for visit in drill.visits())
    assert second == first - 1


def test_tools_are_called(drill: Drill) -> None:
    function = {"name": "look_up", "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}
    tools = [{"type": "function", "function": function}]
    llm = resilient(at_once())
    answer = llm.completion(messages=user("#[500,tool=1]"), tools=tools, **of_litellm(drill))
    [call] = answer.choices[0].message.tool_calls
    assert (call.function.name, call.function.arguments) == ("look_up", '{"word":"pause"}')


def test_a_stream_is_one_of_ours(drill: Drill) -> None:
    stream: Stream[Any] = resilient(at_once()).completion(
        messages=user("#[503,ok]"), stream=True, stream_options={"include_usage": True}, **of_litellm(drill)
    )
    with stream:
        built = litellm.stream_chunk_builder(list(stream))
    assert built.choices[0].message.content == ANSWER
    assert stream.trace is not None
    assert [receipt["output_tokens"] for receipt in stream.trace.receipts] == [None, 9]


def test_calls_beside_each_other(drill: Drill) -> None:
    async def run() -> list[str]:
        llm = resilient(at_once())
        asks = (llm.acompletion(messages=user(f"{n} #[500x{n}]"), **of_litellm(drill)) for n in (1, 2))
        return [answer.choices[0].message.content for answer in await asyncio.gather(*asks)]

    assert asyncio.run(run()) == [ANSWER, ANSWER]
    assert len(drill.played()) == 5


def test_the_preset_of_a_name() -> None:
    assert resilient("llm", fallbacks=["openai/model-2"]).targets == Policy.preset("llm").targets
    assert frameworks.for_litellm.LiteLLM is type(resilient("single"))
