"""The HTTP layers below the clients of openai and anthropic, which are built on httpx2."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from at_gateway import NEVER, Drill
from failing import at_once

from reprieve import _hidden, trace_of
from reprieve.integrations.httpx2 import AsyncRetryTransport, RetryTransport

ASKED = "Say hello."


def settings(drill: Drill, http_client: Any, retries: int = 0) -> dict[str, Any]:
    return {"api_key": "k", "max_retries": retries, "http_client": http_client, "default_headers": drill.headers}


def plain(**fields: Any) -> httpx2.Client:
    return httpx2.Client(transport=RetryTransport(at_once(**fields), methods=["POST"]))


def asynchronous(**fields: Any) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=AsyncRetryTransport(at_once(**fields), methods=["POST"]))


def messages(marker: str) -> list[Any]:
    return [{"role": "user", "content": f"{ASKED} #[{marker}]"}]


class TestOpenAI:
    def test_a_completion(self, drill: Drill) -> None:
        with openai.OpenAI(base_url=drill.url, **settings(drill, plain())) as client:
            answer = client.chat.completions.create(model="m", messages=messages("503,429,ok"))
        assert answer.choices[0].message.content
        assert drill.played() == ["503", "429", "ok"]

    def test_a_body_that_breaks(self, drill: Drill) -> None:
        with openai.OpenAI(base_url=drill.url, **settings(drill, plain())) as client:
            answer = client.chat.completions.create(model="m", messages=messages("cut=30,ok"))
        assert answer.choices[0].message.content
        assert len(drill.visits()) == 2

    def test_its_own_error_carries_the_trace(self, drill: Drill) -> None:
        with (
            openai.OpenAI(base_url=drill.url, **settings(drill, plain())) as client,
            pytest.raises(openai.InternalServerError) as raised,
        ):
            client.chat.completions.create(model="m", messages=messages("500"))
        trace = trace_of(raised.value)
        assert trace is not None
        assert [receipt["kind"] for receipt in trace.receipts] == ["server_error"] * 3

    def test_a_policy_around_it_does_not_multiply(self, drill: Drill) -> None:
        with openai.OpenAI(base_url=drill.url, **settings(drill, plain())) as client:
            result = at_once().execute(client.chat.completions.create, model="m", messages=messages("500"))
        assert isinstance(result.error, openai.InternalServerError)
        assert (result.attempts, len(drill.visits())) == (1, 3)
        assert result.trace.receipts[0]["kind"] == "server_error"

    def test_a_policy_around_it_retries_what_it_makes_of_a_success(self, drill: Drill) -> None:
        def ask() -> None:
            answer = client.chat.completions.with_raw_response.create(model="m", messages=messages("ok"))
            raise openai.APIStatusError("not what was asked for", response=answer.http_response, body=None)

        with openai.OpenAI(base_url=drill.url, **settings(drill, plain())) as client:
            result = at_once(retry_on=["unknown"]).execute(ask)
        assert (result.attempts, len(drill.visits())) == (3, 3)

    def test_a_stream(self, drill: Drill) -> None:
        with openai.OpenAI(base_url=drill.url, **settings(drill, plain())) as client:
            stream = client.chat.completions.create(model="m", messages=messages("503,ok"), stream=True)
            text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        assert text.startswith("The gateway answers")
        trace = trace_of(stream.response)
        assert trace is not None
        assert trace.ended is not None
        assert (trace.ended["outcome"], len(drill.visits())) == ("success", 2)

    def test_a_stream_that_fails_before_its_first_content(self, drill: Drill) -> None:
        with openai.OpenAI(base_url=drill.url, **settings(drill, plain())) as client:
            asked = messages("sse-error=0,sse-cut=0,ok")
            stream = client.chat.completions.create(model="m", messages=asked, stream=True)
            text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
            assert text.startswith("The gateway answers")
            assert drill.played() == ["sse-error=0", "sse-cut=0", "ok"]
            with pytest.raises(openai.APIError):
                list(client.chat.completions.create(model="m", messages=messages("sse-error=0"), stream=True))
        assert len(drill.visits()) == 6

    def test_async(self, drill: Drill) -> None:
        async def main() -> str:
            async with openai.AsyncOpenAI(base_url=drill.url, **settings(drill, asynchronous())) as client:
                answer = await client.chat.completions.create(model="m", messages=messages("503,ok"))
                stream = await client.chat.completions.create(model="m", messages=messages("429,ok"), stream=True)
                pieces = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
            return (answer.choices[0].message.content or "") + "".join(pieces)

        assert asyncio.run(main()).count("The gateway answers") == 2
        assert sorted(drill.played()) == ["429", "503", "ok", "ok"]

    def test_an_attempt_that_is_cut_is_its_own_timeout(self, drill: Drill) -> None:
        async def main() -> None:
            client = asynchronous(attempt_timeout=0.2, max_attempts=2)
            async with openai.AsyncOpenAI(base_url=drill.url, **settings(drill, client)) as sdk:
                await sdk.chat.completions.create(model="m", messages=messages(NEVER))

        with pytest.raises(openai.APITimeoutError) as raised:
            asyncio.run(main())
        trace = trace_of(raised.value)
        assert trace is not None
        assert [receipt["kind"] for receipt in trace.receipts] == ["timeout", "timeout"]
        assert len(drill.visits()) <= 2

    def test_retries_above_are_reported_once(self, drill: Drill) -> None:
        _hidden._reported.clear()
        client = openai.OpenAI(base_url=drill.url, **settings(drill, plain(max_attempts=1), retries=2))
        with client, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with pytest.raises(openai.InternalServerError):
                client.chat.completions.create(model="m", messages=messages("retry-ms=1,500"))
        told = [str(warning.message) for warning in caught if warning.category is RuntimeWarning]
        assert len(told) == 1
        assert "max_retries=0" in told[0]
        assert "OpenAI/Python" in told[0]
        assert len(drill.visits()) == 3


class TestAnthropic:
    def test_a_message(self, drill: Drill) -> None:
        with anthropic.Anthropic(base_url=drill.origin, **settings(drill, plain())) as client:
            answer = client.messages.create(model="m", max_tokens=50, messages=messages("529,ok"))
        assert answer.content
        assert drill.played() == ["529", "ok"]

    def test_a_stream(self, drill: Drill) -> None:
        with (
            anthropic.Anthropic(base_url=drill.origin, **settings(drill, plain())) as client,
            client.messages.stream(model="m", max_tokens=50, messages=messages("529,ok")) as stream,
        ):
            text = stream.get_final_text()
        assert text.startswith("The gateway answers")
        trace = trace_of(stream.response)
        assert trace is not None
        assert trace.ended is not None
        assert (trace.ended["outcome"], len(drill.visits())) == ("success", 2)

    def test_async(self, drill: Drill) -> None:
        async def main() -> Any:
            async with anthropic.AsyncAnthropic(base_url=drill.origin, **settings(drill, asynchronous())) as client:
                return await client.messages.create(model="m", max_tokens=50, messages=messages("reset,ok"))

        assert asyncio.run(main()).content
        assert drill.played() == ["reset", "ok"]
