"""pydantic-ai under a policy: what is its own, beside what every framework is asked."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import httpx2
import openai
import pytest
from at_gateway import ANSWER, NEVER, Drill
from failing import at_once
from frameworks import Word, client, resilient_model
from pydantic_ai import Agent, ModelSettings
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import PartDeltaEvent, TextPartDelta
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel as CannedModel
from pydantic_ai.providers.openai import OpenAIProvider

from reprieve import trace_of
from reprieve.integrations.pydantic_ai import SWITCHES, ResilientModel


def test_an_agent_with_tools_and_structured_output(drill: Drill) -> None:
    async def ask() -> Any:
        agent = Agent(resilient_model(drill, at_once(), 2), output_type=Word)

        @agent.tool_plain
        def look_up(word: str) -> str:
            return "a kind of silence"

        return await agent.run("#[500,tool=1,503x3,tool=2]")

    result = asyncio.run(ask())
    assert result.output == Word(word="pause", count=7)
    assert result.usage.requests == 2
    assert drill.played() == ["500", "tool=1", "503", "503", "503", "tool=2"]


def test_its_own_exception_is_raised_and_no_group(drill: Drill) -> None:
    async def ask() -> None:
        await Agent(resilient_model(drill, at_once(max_attempts=1), 2)).run("#[500]")

    with pytest.raises(ModelHTTPError) as caught:
        asyncio.run(ask())
    assert isinstance(caught.value.__cause__, openai.InternalServerError)
    trace = trace_of(caught.value)
    assert trace is not None
    assert [receipt["target"] for receipt in trace.receipts] == ["primary", "backup"]


def test_a_lone_model_shows_what_it_is(drill: Drill) -> None:
    model = resilient_model(drill, at_once())
    [inner] = model.models
    assert (model.model_name, model.system, model.profile) == (inner.model_name, inner.system, inner.profile)


def test_streamed_agents_with_tools(drill: Drill) -> None:
    async def ask() -> list[str]:
        agent = Agent(resilient_model(drill, at_once()))

        @agent.tool_plain
        def look_up(word: str) -> str:
            return "a kind of silence"

        pieces: list[str] = []
        async with agent.iter("#[sse-cut=0,tool=1,500,ok]") as steps:
            async for step in steps:
                if Agent.is_model_request_node(step):
                    async with step.stream(steps.ctx) as events:
                        async for event in events:
                            if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                                pieces.append(event.delta.content_delta)
        assert steps.result is not None
        assert steps.result.output == ANSWER
        return pieces

    assert ANSWER.endswith("".join(asyncio.run(ask())))
    assert drill.played() == ["sse-cut=0", "tool=1", "500", "ok"]


def test_a_stream_has_its_usage_in_the_records(drill: Drill) -> None:
    lines: list[str] = []

    async def ask() -> int:
        async with Agent(resilient_model(drill, at_once().bind(sink=lines.append))).run_stream("Hello") as result:
            assert await result.get_output() == ANSWER
            return result.usage.output_tokens

    assert asyncio.run(ask()) == 9
    assert json.loads(lines[0])["output_tokens"] == 9


def test_who_leaves_a_stream_early_closes_it(drill: Drill) -> None:
    lines: list[str] = []

    async def ask() -> None:
        policy = at_once().bind(sink=lines.append)
        async with Agent(resilient_model(drill, policy)).run_stream("#[sse-slow=50]") as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                break

    asyncio.run(ask())
    assert json.loads(lines[-1])["outcome"] in ("cancelled", "success")


def test_a_cancelled_task_is_not_retried(drill: Drill) -> None:
    async def ask() -> None:
        task = asyncio.create_task(Agent(resilient_model(drill, at_once())).run(f"#[{NEVER}]"))
        await drill.reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ask())
    assert len(drill.played()) == 1


@pytest.mark.skipif("request_timeout" not in ModelSettings.__annotations__, reason="an older pydantic-ai")
def test_a_request_timeout_bounds_all_attempts(drill: Drill) -> None:
    async def ask() -> None:
        settings = ModelSettings(request_timeout=0.5)  # type: ignore[typeddict-unknown-key, unused-ignore]
        await Agent(resilient_model(drill, at_once(attempt_timeout=0.3), 2), model_settings=settings).run(f"#[{NEVER}]")

    with pytest.raises(Exception, match=r"0\.5"):
        asyncio.run(ask())
    assert len(drill.played()) <= 2


def test_retries_of_its_own_are_refused(drill: Drill) -> None:
    async def ask() -> None:
        await Agent(resilient_model(drill, at_once()), model_settings=cast("Any", {"max_retries": 2})).run("Hello")

    with pytest.raises(ValueError, match="max_retries: 2 is not allowed; it takes nothing, or 0: the policy retries"):
        asyncio.run(ask())
    settings: Any = {"max_retries": 3}
    model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client(drill)), settings=settings)
    with pytest.raises(ValueError, match="max_retries: 3"):
        ResilientModel(model, "interactive")
    assert drill.played() == []


@pytest.mark.skipif(SWITCHES, reason="a setting of this pydantic-ai switches them off")
def test_a_client_that_retries_is_refused(drill: Drill) -> None:
    with pytest.raises(ValueError, match=r"client\.max_retries: 2 is not allowed; it takes 0"):
        ResilientModel(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client(drill))), "interactive")


def test_a_transport_that_retries_is_refused(drill: Drill) -> None:
    class AsyncTenacityTransport(httpx2.AsyncHTTPTransport):
        """Known by its name, as pydantic-ai's is: that one needs tenacity."""

    http = httpx2.AsyncClient(transport=AsyncTenacityTransport())
    own = openai.AsyncOpenAI(base_url=drill.url, api_key="none", http_client=http, max_retries=0)
    with pytest.raises(ValueError, match="http_client: one with AsyncTenacityTransport"):
        ResilientModel(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=own)), "interactive")


def test_what_falls_back_already_is_refused() -> None:
    for wrapped in (FallbackModel(CannedModel(), CannedModel()), ResilientModel(CannedModel(), "single")):
        with pytest.raises(ValueError, match="models that are not wrapped yet"):
            ResilientModel(wrapped, "interactive")


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([7], "models: 7 is not allowed; it takes Model or str"),
        (Agent(CannedModel()), "models: an Agent is not allowed; it takes a list of Model or str"),
    ],
)
def test_what_is_no_model_is_refused(models: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ResilientModel(models, "interactive")


@pytest.mark.parametrize("mode", ["restart", "resume"])
def test_modes_that_consumers_do_not_know_are_refused(mode: Any) -> None:
    with pytest.raises(ValueError, match=r"stream\.mode"):
        ResilientModel(CannedModel(), at_once(stream={"mode": mode}))


def test_a_buffered_stream_is_retried_to_its_end(drill: Drill) -> None:
    async def ask() -> str:
        model = resilient_model(drill, at_once(stream={"mode": "buffered"}))
        async with Agent(model).run_stream("#[sse-cut=3,ok]") as result:
            return await result.get_output()

    assert asyncio.run(ask()) == ANSWER
    assert drill.played() == ["sse-cut=3", "ok"]


@pytest.mark.parametrize("delta", [True, False])
def test_the_text_of_a_buffered_stream_comes_once(drill: Drill, delta: bool) -> None:
    """pydantic-ai shows what is there of an answer, and then what comes: all of a buffered one is there."""

    async def ask() -> list[str]:
        model = resilient_model(drill, at_once(stream={"mode": "buffered"}))
        async with Agent(model).run_stream("#[sse-cut=3,ok]") as result:
            return [piece async for piece in result.stream_text(delta=delta, debounce_by=None)]

    pieces = asyncio.run(ask())
    assert len(pieces) > 1
    assert ("".join(pieces) if delta else pieces[-1]) == ANSWER


def test_a_buffered_agent_has_its_tools_and_their_answers(drill: Drill) -> None:
    async def ask() -> Any:
        agent = Agent(resilient_model(drill, at_once(stream={"mode": "buffered"})), output_type=Word)

        @agent.tool_plain
        def look_up(word: str) -> str:
            return "a kind of silence"

        async with agent.run_stream("#[sse-cut=0,tool=1,500,tool=2]") as result:
            return await result.get_output()

    assert asyncio.run(ask()) == Word(word="pause", count=7)
    assert drill.played() == ["sse-cut=0", "tool=1", "500", "tool=2"]
