"""The OpenAI Agents SDK under a policy: what is its own, beside what every framework is asked."""

from __future__ import annotations

import asyncio
from typing import Any

import agents
import pytest
from agents.retry import ModelRetrySettings
from at_gateway import ANSWER, NEVER, Drill
from failing import at_once
from frameworks import Word, agents_model, client, responses

from reprieve import trace_of
from reprieve.integrations.openai_agents import ResilientModel, ResilientProvider


@agents.function_tool
def look_up(word: str) -> str:
    """Looks a word up."""
    return "a kind of silence"


def test_an_agent_with_tools_and_structured_output(drill: Drill) -> None:
    async def ask() -> Any:
        model = agents_model(drill, at_once(), 2)
        helper = agents.Agent(name="Helper", tools=[look_up], model=model, output_type=Word)
        return await agents.Runner.run(helper, "#[500,tool=1,503x3,json]")

    assert asyncio.run(ask()).final_output == Word(word="pause", count=7)
    assert drill.played() == ["500", "tool=1", "503", "503", "503", "json"]


def test_streamed_agents_with_tools(drill: Drill) -> None:
    async def ask() -> Any:
        helper = agents.Agent(name="Helper", tools=[look_up], model=agents_model(drill, at_once()))
        streamed = agents.Runner.run_streamed(helper, "#[sse-cut=0,tool=1,500,ok]")
        async for _ in streamed.stream_events():
            pass
        return streamed.final_output

    assert asyncio.run(ask()) == ANSWER
    assert drill.played() == ["sse-cut=0", "tool=1", "500", "ok"]


class Spans(agents.TracingProcessor):
    """Writes down the spans of model calls."""

    def __init__(self) -> None:
        self.failed: list[bool] = []

    def on_span_end(self, span: agents.Span[Any]) -> None:
        if isinstance(span.span_data, agents.GenerationSpanData):
            self.failed.append(span.error is not None)

    def on_span_start(self, span: agents.Span[Any]) -> None: ...
    def on_trace_start(self, trace: agents.Trace) -> None: ...
    def on_trace_end(self, trace: agents.Trace) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


def test_each_attempt_is_a_span(drill: Drill) -> None:
    async def ask() -> None:
        helper = agents.Agent(name="Helper", model=agents_model(drill, at_once()))
        await agents.Runner.run(helper, "#[500,429,ok]")

    spans = Spans()
    agents.set_trace_processors([spans])
    agents.set_tracing_disabled(False)
    try:
        asyncio.run(ask())
    finally:
        agents.set_tracing_disabled(True)
        agents.set_trace_processors([])
    assert len(spans.failed) == 3


def test_what_the_consumer_does_between_events_keeps_its_retries(drill: Drill) -> None:
    """Only the model's own requests are made without retries, not those of the code that reads its events."""

    async def ask() -> None:
        plain = agents.OpenAIChatCompletionsModel("model-1", client(drill))
        settings = agents.ModelSettings()
        arguments: Any = (None, "Hello", settings, [], None, [], agents.ModelTracing.DISABLED)
        rest: Any = {"previous_response_id": None, "conversation_id": None, "prompt": None}
        events = agents_model(drill, at_once()).stream_response(*arguments, **rest)
        async for event in events:
            if event.type == "response.output_text.delta":
                other: Any = (None, "#[500x1]", *arguments[2:])
                await plain.get_response(*other, **rest)
                break
        await events.aclose()  # type: ignore[attr-defined]

    asyncio.run(ask())
    assert drill.played() == ["ok", "500", "ok"]


@pytest.mark.parametrize("streamed", [False, True])
def test_the_runners_own_retries_are_refused(drill: Drill, streamed: bool) -> None:
    async def ask() -> None:
        settings = agents.ModelSettings(retry=ModelRetrySettings(max_retries=2))
        helper = agents.Agent(name="Helper", model=agents_model(drill, at_once()), model_settings=settings)
        if streamed:
            async for _ in agents.Runner.run_streamed(helper, "Hello").stream_events():
                pass
        else:
            await agents.Runner.run(helper, "Hello")

    with pytest.raises(ValueError, match=r"model_settings\.retry\.max_retries: 2 is not allowed"):
        asyncio.run(ask())
    assert drill.played() == []


def test_the_models_of_a_provider_share_their_guards(drill: Drill) -> None:
    async def ask() -> list[str]:
        config = responses(drill, at_once(max_attempts=1, breaker={"consecutive_failures": 2}))
        raised: list[str] = []
        for _ in range(3):
            try:
                await agents.Runner.run(agents.Agent(name="Helper", model="model-1"), "#[500]", run_config=config)
            except Exception as error:
                raised.append(f"{type(error).__name__} {trace_of(error) is not None}")
        return raised

    assert asyncio.run(ask()) == ["InternalServerError True", "InternalServerError True", "CircuitOpen True"]
    assert drill.played() == ["500", "500"]


def test_a_cancelled_task_is_not_retried(drill: Drill) -> None:
    async def ask() -> None:
        helper = agents.Agent(name="Helper", model=agents_model(drill, at_once()))
        task = asyncio.create_task(agents.Runner.run(helper, f"#[{NEVER}]"))
        await drill.reached()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ask())
    assert len(drill.played()) == 1


def test_wrapping_twice_is_refused(drill: Drill) -> None:
    async def ask() -> None:
        ResilientModel(agents_model(drill, at_once()), "interactive")

    with pytest.raises(ValueError, match="one that is not wrapped yet"):
        asyncio.run(ask())
    with pytest.raises(ValueError, match=r"stream\.mode"):
        ResilientModel([], at_once(stream={"mode": "resume"}))


def test_the_name_of_a_fallback_is_no_list_of_them() -> None:
    model: Any = "gpt-5-mini"
    with pytest.raises(ValueError, match="fallbacks: 'gpt-5-mini' is not allowed; it takes a list of str or Model"):
        ResilientProvider("single", fallbacks=model)


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("gpt-5", "models: 'gpt-5' is not allowed; it takes a list of Model, also for a single one"),
        (["gpt-5"], "models: 'gpt-5' is not allowed; it takes Model"),
        (agents.MultiProvider(), "models: a MultiProvider is not allowed; it takes a list of Model"),
    ],
)
def test_what_is_no_model_is_refused(models: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ResilientModel(models, "single")


def test_a_provider_of_its_own_is_the_default() -> None:
    assert isinstance(ResilientProvider("single").provider, agents.MultiProvider)
