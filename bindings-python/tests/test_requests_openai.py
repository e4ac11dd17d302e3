"""`check`, `prepare` and `repair` around the real openai client, against the fault gateway."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
import pydantic
import pytest
from at_gateway import Drill
from failing import at_once

from reprieve import BadOutput, Failure, Policy, trace_of, wrap


def settings(drill: Drill) -> dict[str, Any]:
    return {"base_url": drill.url, "api_key": "k", "max_retries": 0, "default_headers": drill.headers}


def asked(marker: str, *before: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in (*before, f"Say hello. #[{marker}]")]


def text_of(answer: Any) -> str:
    return str(answer.choices[0].message.content)


def test_a_token_is_refreshed(drill: Drill) -> None:
    client = openai.OpenAI(**settings(drill))
    tokens: list[str] = []

    def refresh(request: dict[str, Any], failure: Failure) -> dict[str, Any]:
        assert isinstance(failure.error, openai.AuthenticationError)
        tokens.append("new")
        return {**request, "extra_headers": {"authorization": "Bearer new"}}

    ask = Policy(max_attempts=1).bind(repair={"auth_failed": refresh})(client.chat.completions.create)
    assert text_of(ask(model="m", messages=asked("401,ok")))
    assert (drill.played(), tokens) == (["401", "ok"], ["new"])
    with pytest.raises(openai.AuthenticationError) as given_up:
        ask(model="m", messages=asked("401"))
    trace = trace_of(given_up.value)
    assert trace is not None
    assert [receipt["reason"] for receipt in trace.receipts] == ["repair", "not_retryable"]


def test_messages_are_shrunk(drill: Drill) -> None:
    def shrink(request: dict[str, Any], failure: Failure) -> dict[str, Any]:
        return {**request, "messages": request["messages"][-1:]}

    async def main() -> None:
        async with openai.AsyncOpenAI(**settings(drill)) as client:
            ask = at_once().bind(repair={"context_length_exceeded": shrink})(client.chat.completions.create)
            answer = await ask(model="m", messages=asked("context,ok", "a", "b", "c"))
            assert text_of(answer)

    asyncio.run(main())
    assert drill.played() == ["context", "ok"]


class Greeting(pydantic.BaseModel):
    """What the gateway's answer is not."""

    greeting: str


def test_the_validation_error_is_fed_back(drill: Drill) -> None:
    client = openai.OpenAI(**settings(drill))
    sent: list[Any] = []

    def feed_back(request: dict[str, Any], failure: Failure) -> dict[str, Any]:
        said = {"role": "assistant", "content": text_of(failure.value)}
        wrong = {"role": "user", "content": f"Not valid: {failure.message}. Again. #[ok]"}
        sent.append([*request["messages"], said, wrong])
        return {**request, "messages": sent[-1]}

    bound = at_once(max_attempts=1).bind(
        check=lambda answer: Greeting.model_validate_json(text_of(answer)), repair={"schema_invalid": feed_back}
    )
    with pytest.raises(pydantic.ValidationError) as given_up:
        bound.call(client.chat.completions.create, model="m", messages=asked("ok"))
    trace = trace_of(given_up.value)
    assert trace is not None
    assert [receipt["kind"] for receipt in trace.receipts] == ["schema_invalid"] * 2
    assert [message["role"] for message in sent[0]] == ["user", "assistant", "user"]
    assert "Invalid JSON" in sent[0][-1]["content"]
    assert trace.ended is not None
    assert trace.ended["output_tokens"] == sum(receipt["output_tokens"] for receipt in trace.receipts) > 0


@pytest.mark.parametrize(("marker", "kind"), [("truncated", "truncated"), ("filter", "content_filtered")])
def test_an_answer_that_was_cut(drill: Drill, marker: str, kind: str) -> None:
    finishes = {"length": "truncated", "content_filter": "content_filtered"}

    def check(answer: Any) -> str | None:
        return finishes.get(answer.choices[0].finish_reason)

    client = openai.OpenAI(**settings(drill))
    with pytest.raises(BadOutput) as refused:
        at_once().bind(check=check).call(client.chat.completions.create, model="m", messages=asked(marker))
    assert refused.value.failure is not None
    assert refused.value.failure.kind == kind
    assert refused.value.value.choices
    assert len(drill.played()) == 1


def test_a_request_is_prepared_for_its_target(drill: Drill) -> None:
    models = {"primary": "gpt-main", "backup": "gpt-backup"}
    seen: list[str] = []

    def prepare(request: dict[str, Any], target: str) -> dict[str, Any]:
        seen.append(models[target])
        return {**request, "model": models[target]}

    policy = at_once(max_attempts=1, targets=[{"id": "primary"}, {"id": "backup"}])
    client = openai.OpenAI(**settings(drill))
    answer = policy.bind(prepare=prepare).call(client.chat.completions.create, messages=asked("503,ok"))
    assert (answer.model, seen) == ("gpt-backup", ["gpt-main", "gpt-backup"])


def unretried(drill: Drill) -> dict[str, Any]:
    return {"base_url": drill.url, "api_key": "k", "default_headers": drill.headers}


def test_a_wrapped_client_s_arguments_are_the_request(drill: Drill) -> None:
    seen: list[Any] = []
    bound = at_once(max_attempts=1).bind(
        repair={"context_length_exceeded": lambda request, _: {**request, "messages": request["messages"][-1:]}},
        prepare=lambda request, target: {**request, "model": f"for-{target}"},
        check=seen.append,
    )
    client = wrap(openai.OpenAI(**unretried(drill)), bound)
    answer = client.chat.completions.create(model="m", messages=asked("context,ok", "a", "b"))  # type: ignore[arg-type]
    assert (answer.model, drill.played(), seen) == ("for-primary", ["context", "ok"], [answer])


def test_a_wrapped_client_s_stream_is_repaired(drill: Drill) -> None:
    async def refresh(request: dict[str, Any], _: Failure) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {**request, "extra_headers": {"authorization": "Bearer new"}}

    async def main() -> str:
        client = wrap(openai.AsyncOpenAI(**unretried(drill)), at_once().bind(repair={"auth_failed": refresh}))
        stream = await client.chat.completions.create(model="m", messages=asked("401,ok"), stream=True)  # type: ignore[arg-type]
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

    assert "all is well" in asyncio.run(main())
    assert drill.played() == ["401", "ok"]
