"""LangChain under a policy: what is its own, beside what every framework is asked."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import frameworks
import openai
import pytest
from at_gateway import ANSWER, NEVER, OFTEN, Drill, cut_then
from failing import at_once
from frameworks import Word, agent, chat, resilient_chat, said
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_anthropic import ChatAnthropic
from langchain_core.callbacks import BaseCallbackHandler, UsageMetadataCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import HumanMessage
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnableParallel
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from reprieve import Policy, trace_of
from reprieve.integrations.langchain import ResilientMiddleware, resilient


class Runs(BaseCallbackHandler):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_chat_model_start(self, *_: Any, tags: list[str] | None = None, **__: Any) -> None:
        self.told.append(f"start {' '.join(tags or ())}")

    def on_llm_end(self, *_: Any, **__: Any) -> None:
        self.told.append("end")

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        self.told.append(f"error {getattr(error, 'status_code', None)}")


class TestRunnable:
    def test_the_model_that_was_given_keeps_its_retries(self, drill: Drill) -> None:
        given = chat(drill, max_retries=7)
        made = resilient(given, at_once()).models[0]
        assert (made.max_retries, made.root_client.max_retries) == (0, 0)  # type: ignore[attr-defined]
        assert (given.max_retries, given.root_client.max_retries, given.root_async_client.max_retries) == (7, 7, 7)

    def test_callbacks_fire_once_for_each_attempt(self, drill: Drill) -> None:
        runs, usage = Runs(), UsageMetadataCallbackHandler()
        resilient_chat(drill, at_once()).invoke("#[500,429,ok]", {"callbacks": [runs, usage]})
        attempt = "start reprieve:attempt:"
        assert runs.told == [f"{attempt}1", "error 500", f"{attempt}2", "error 429", f"{attempt}3", "end"]
        assert usage.usage_metadata["model-1"]["output_tokens"] == 9

    def test_giving_up_raises_the_very_exception(self, drill: Drill) -> None:
        with pytest.raises(openai.InternalServerError) as caught:
            resilient_chat(drill, at_once(max_attempts=2)).invoke("#[500]")
        assert caught.value.status_code == 500
        assert "gave up after 2 attempts" in caught.value.__notes__[0]  # type: ignore[attr-defined]

    def test_batches_retry_each_of_their_own(self, drill: Drill) -> None:
        model = resilient_chat(drill, at_once())
        texts = ["#[500x1]", "#[503x2]", "#[401]", "Hello"]
        answers = model.batch([*texts], return_exceptions=True)  # type: ignore[arg-type]
        assert [getattr(answer, "content", type(answer).__name__) for answer in answers] == [
            ANSWER,
            ANSWER,
            "OpenAIAuthenticationError",
            ANSWER,
        ]
        assert sorted(drill.played()) == ["401", "500", "503", "503", "ok", "ok", "ok"]

    def test_batches_of_coroutines_too(self, drill: Drill) -> None:
        async def run() -> list[Any]:
            return await resilient_chat(drill, at_once()).abatch(["#[500x1]", "#[503x2]"])

        assert [answer.content for answer in asyncio.run(run())] == [ANSWER, ANSWER]
        assert len(drill.played()) == 5

    def test_tools_are_bound_to_every_model(self, drill: Drill) -> None:
        @tool
        def look_up(word: str) -> str:
            """Looks a word up."""
            return word

        model = resilient_chat(drill, at_once(max_attempts=1), 2).bind_tools([look_up])
        answer = model.invoke("#[500,tool=1]")
        assert [call["args"] for call in answer.tool_calls] == [{"word": "pause"}]
        assert [chunk.tool_calls for chunk in model.stream("#[503,tool=1]") if chunk.tool_call_chunks]
        assert drill.played() == ["500", "tool=1", "503", "tool=1"]

    def test_an_answer_that_does_not_fit_its_schema_is_asked_for_again(self, drill: Drill) -> None:
        lines: list[str] = []
        model = resilient_chat(drill, at_once().bind(sink=lines.append)).with_structured_output(Word)
        assert model.invoke("#[ok,json]") == Word(word="pause", count=7)
        assert drill.played() == ["ok", "json"]
        assert json.loads(lines[0])["kind"] == "schema_invalid"

    def test_retries_inside_of_what_is_wrapped_are_found(self, drill: Drill) -> None:
        parallel = RunnableParallel(one=chat(drill), two=chat(drill).bind(stop=["."]) | RunnableLambda(str))
        chain = RunnableLambda(str) | parallel
        with pytest.raises(openai.InternalServerError):
            resilient(chain, at_once(max_attempts=1)).invoke("#[500]")
        assert drill.played() == ["500", "500"]

    def test_clients_that_are_made_late_do_not_retry_either(self, drill: Drill) -> None:
        given = ChatAnthropic(model_name="claude", base_url=drill.origin, api_key="none", default_headers=drill.headers)  # type: ignore[call-arg, unused-ignore]
        assert given._client.max_retries == 2
        for _ in range(2):
            with pytest.raises(anthropic.InternalServerError):
                resilient(given, at_once(max_attempts=1)).invoke("#[500]")
        model = resilient(given, at_once())
        assert "".join(str(chunk.content) for chunk in model.stream("#[sse-eof=0,ok]")) == ANSWER
        assert drill.played() == ["500", "500", "sse-eof=0", "ok"]
        model = resilient(given, at_once(attempt_timeout=0.4, max_attempts=OFTEN))
        assert model.invoke(f"#[{NEVER},ok]").content == ANSWER
        assert cut_then(drill.played()[4:], "ok")
        assert given._client.max_retries == 2

    def test_the_responses_api(self, drill: Drill) -> None:
        model = resilient(chat(drill, use_responses_api=True), at_once())
        pieces = [block for chunk in model.stream("#[500,sse-cut=0,ok]") for block in chunk.content_blocks]
        assert "".join(str(block.get("text", "")) for block in pieces) == ANSWER
        assert drill.played() == ["500", "sse-cut=0", "ok"]

    @pytest.mark.parametrize("deep", [False, True])
    def test_with_retry_is_refused(self, drill: Drill, deep: bool) -> None:
        retrying = chat(drill).with_retry(stop_after_attempt=3)
        chain = RunnableLambda(str) | retrying if deep else retrying
        with pytest.raises(ValueError, match=r"one with \.with_retry\(\) is not allowed"):
            resilient(chain, "interactive")

    def test_with_retry_of_the_result_is_refused(self, drill: Drill) -> None:
        for model in (resilient_chat(drill, at_once()), resilient(chat(drill) | RunnableLambda(str), at_once())):
            with pytest.raises(ValueError, match="with_retry: a runnable under a policy is not allowed"):
                model.with_retry(stop_after_attempt=3)

    def test_what_is_configurable_does_not_retry_either(self, drill: Drill) -> None:
        field = ConfigurableField(id="which")
        config: Any = {"configurable": {"which": "other"}}
        for given in (
            chat(drill).configurable_fields(temperature=field),
            chat(drill).configurable_alternatives(field, other=chat(drill)),
            chat(drill).configurable_alternatives(field, other=lambda: chat(drill)),
        ):
            chosen = {"configurable": {"which": 0.5}} if "default_key" not in type(given).model_fields else config
            for chose in ({}, chosen):
                with pytest.raises(openai.InternalServerError):
                    resilient(given, at_once(max_attempts=1)).invoke("#[500]", chose)  # type: ignore[arg-type]
        assert drill.played() == ["500"] * 6

    def test_a_model_that_is_made_for_each_call_has_its_retries_off(
        self, drill: Drill, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        options: dict[str, Any] = {"model_provider": "openai", "configurable_fields": ("model", "temperature")}
        options |= {"base_url": drill.url, "default_headers": drill.headers}
        with pytest.raises(
            ValueError, match="init_chat_model: max_retries=None is not allowed; it takes max_retries=0"
        ):
            resilient(init_chat_model("gpt-5", **options), at_once())
        once = init_chat_model("gpt-5", max_retries=0, **options)
        assert resilient(once, at_once()).invoke("#[500,ok]").content == ANSWER
        helper = create_agent(once, [], middleware=[ResilientMiddleware(at_once())])
        assert helper.invoke(said("#[503,ok]"))["messages"][-1].content == ANSWER
        assert drill.played() == ["500", "ok", "503", "ok"]

    def test_one_model_is_no_list_of_fallbacks(self, drill: Drill) -> None:
        other: Any = chat(drill)
        message = r"fallbacks: a ChatOpenAI is not allowed; it takes a list of Runnable, also for a single one"
        with pytest.raises(ValueError, match=message):
            resilient(chat(drill), "single", fallbacks=other)
        with pytest.raises(ValueError, match=message):
            ResilientMiddleware("single", fallbacks=other)

    def test_what_is_no_runnable_is_refused(self, drill: Drill) -> None:
        name: Any = "gpt-5"
        with pytest.raises(ValueError, match="runnable: 'gpt-5' is not allowed; it takes Runnable"):
            resilient(name, "single")
        with pytest.raises(ValueError, match="fallbacks: 'gpt-5' is not allowed; it takes Runnable"):
            resilient(chat(drill), "single", fallbacks=[name])

    def test_retries_that_cannot_be_switched_off_are_refused(self) -> None:
        class Stubborn(FakeListChatModel):
            max_retries: int = 6

        with pytest.raises(ValueError, match=r"Stubborn\.max_retries: 6 is not allowed; it takes 0"):
            resilient(Stubborn(responses=["hi"]), "interactive")
        assert resilient(Stubborn(responses=["hi"], max_retries=0), "interactive").invoke("?").content == "hi"

    def test_wrapping_twice_is_refused(self, drill: Drill) -> None:
        with pytest.raises(ValueError, match="one that is not wrapped yet"):
            resilient(resilient_chat(drill, at_once()), "interactive")

    def test_what_is_a_chat_model_stays_one(self, drill: Drill) -> None:
        model = resilient_chat(drill, at_once())
        assert isinstance(model, BaseChatModel)
        assert model.model_name == "model-1"
        assert model.generate([[HumanMessage("#[500x1]")]]).generations[0][0].text == ANSWER
        assert create_agent(model, []).invoke(said("#[503x1]"))["messages"][-1].content == ANSWER
        assert drill.played() == ["500", "ok", "503", "ok"]

    def test_a_cancelled_task_is_not_retried(self, drill: Drill) -> None:
        async def run() -> None:
            task = asyncio.create_task(resilient_chat(drill, at_once()).ainvoke(f"#[{NEVER}]"))
            await drill.reached()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(run())
        assert len(drill.played()) == 1

    def test_an_end_without_a_finish_frame_is_no_answer(self, drill: Drill) -> None:
        pieces = [chunk.content for chunk in resilient_chat(drill, at_once()).stream("#[sse-eof=0,ok]")]
        assert "".join(map(str, pieces)) == ANSWER
        with pytest.raises(Exception, match="without its finish frame"):
            list(resilient_chat(drill, at_once()).stream("#[sse-eof=2,ok]"))
        assert drill.played() == ["sse-eof=0", "ok", "sse-eof=2"]


class TestTokensInCallbacks:
    """Somebody may see the answer while it is made, though it is only invoked."""

    @staticmethod
    def pieces(drill: Drill, text: str) -> list[str]:
        told = agent(drill, at_once()).stream(said(text), stream_mode="messages")
        return [str(message.content) for message, _ in told]

    def test_what_nobody_has_seen_is_tried_again(self, drill: Drill) -> None:
        assert "".join(self.pieces(drill, "#[sse-cut=0,ok]")) == ANSWER
        assert drill.played() == ["sse-cut=0", "ok"]

    def test_what_somebody_has_seen_is_not_repeated(self, drill: Drill) -> None:
        with pytest.raises(Exception) as caught:  # noqa: PT011  # the client's own, of the broken connection
            self.pieces(drill, "#[sse-cut=2,ok]")
        trace = trace_of(caught.value)
        assert trace is not None
        assert (trace.receipts[0]["reason"], trace.receipts[0]["delivered"]) == ("already_delivered", 2)
        assert drill.played() == ["sse-cut=2"]

    def test_nor_by_the_runnable(self, drill: Drill) -> None:
        async def run() -> list[str]:
            chain = resilient_chat(drill, at_once()) | RunnableLambda(lambda message: message)
            found = chain.astream_events("#[sse-cut=2,ok]")
            return [event["event"] async for event in found]

        with pytest.raises(Exception) as caught:  # noqa: PT011
            asyncio.run(run())
        assert trace_of(caught.value) is not None
        assert drill.played() == ["sse-cut=2"]

    def test_a_model_that_streams_to_nobody_is_tried_again(self, drill: Drill) -> None:
        model = resilient(chat(drill, streaming=True), at_once())
        assert model.invoke("#[sse-cut=2,ok]", {"callbacks": [Runs()]}).content == ANSWER
        assert drill.played() == ["sse-cut=2", "ok"]


class TestAgents:
    def test_each_model_call_has_its_own_attempts(self, drill: Drill) -> None:
        @tool
        def look_up(word: str) -> str:
            """Looks a word up."""
            return "a kind of silence"

        messages = agent(drill, at_once(), 2, [look_up]).invoke(said("#[500,tool=1,503x3,ok]"))["messages"]
        assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
        assert messages[-1].content == ANSWER
        assert drill.played() == ["500", "tool=1", "503", "503", "503", "ok"]

    @pytest.mark.parametrize("asynchronous", [False, True])
    def test_tools_have_a_policy_of_their_own(self, drill: Drill, asynchronous: bool) -> None:
        calls: list[str] = []

        @tool
        def look_up(word: str) -> str:
            """Looks a word up."""
            calls.append(word)
            if len(calls) < 3:
                raise ConnectionResetError("no answer")
            return "a kind of silence"

        def ask(**options: Any) -> Any:
            made = agent(drill, at_once(), 1, [look_up], **options)
            text = said("#[tool=1,ok]")
            return asyncio.run(made.ainvoke(text)) if asynchronous else made.invoke(text)

        with pytest.raises(ConnectionResetError):
            ask()
        assert calls == ["pause"]
        calls.clear()
        drill.id += "-again"
        assert ask(tool_policy=at_once())["messages"][2].content == "a kind of silence"
        assert calls == ["pause"] * 3

    def test_an_interrupt_is_no_failure(self, drill: Drill) -> None:
        calls: list[str] = []

        @tool
        def ask_human(word: str) -> str:
            """Asks a person."""
            calls.append(word)
            return str(interrupt("May I?"))

        everything = at_once(retry_on=["unknown", "server_error"])
        made = agent(drill, everything, 1, [ask_human], tool_policy=everything, checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "1"}}
        paused = made.invoke(said("#[tool=1,ok]"), config)
        assert [pause.value for pause in paused["__interrupt__"]] == ["May I?"]
        assert calls == ["pause"]
        assert made.invoke(Command(resume="yes"), config)["messages"][-1].content == ANSWER

    def test_structured_answers(self, drill: Drill) -> None:
        made = agent(drill, at_once(), 1, (), response_format=Word)
        assert made.invoke(said("#[500,tool=1]"))["structured_response"] == Word(word="pause", count=7)

    def test_agents_beside_each_other(self, drill: Drill) -> None:
        async def run() -> list[Any]:
            made = agent(drill, at_once())
            return await asyncio.gather(*(made.ainvoke(said(f"{n} #[500x{n}]")) for n in (1, 2)))

        assert [state["messages"][-1].content for state in asyncio.run(run())] == [ANSWER, ANSWER]
        assert len(drill.played()) == 5

    def test_a_breaker_is_shared_by_the_calls_of_an_agent(self, drill: Drill) -> None:
        policy = at_once(max_attempts=1, breaker={"consecutive_failures": 2})
        made = create_agent(chat(drill), [], middleware=[ResilientMiddleware(policy)])
        raised: list[str] = []
        for _ in range(3):
            try:
                made.invoke(said("#[500]"))
            except Exception as error:
                raised.append(type(error).__name__)
        assert raised == ["OpenAIAPIError", "OpenAIAPIError", "CircuitOpen"]
        assert drill.played() == ["500", "500"]

    def test_more_fallbacks_than_targets_are_refused(self, drill: Drill) -> None:
        with pytest.raises(ValueError, match="models: 3 is not allowed"):
            ResilientMiddleware(Policy.preset("llm"), fallbacks=[chat(drill)] * 2)


def test_the_frameworks_are_asked_with_retries_on(drill: Drill) -> None:
    """Else no test here would show that they are switched off."""
    assert chat(drill).root_client.max_retries == 2
    assert frameworks.client(drill).max_retries == 2
