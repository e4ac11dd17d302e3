"""The frameworks, each as its users call it, behind one question: the text of an answer, or its exception.

Clients are made anew for each question, and inside of its event loop.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # LiteLLM would fetch its prices when it is imported
os.environ["LANGSMITH_TRACING"] = "false"

import agents
import httpx2
import litellm
import openai
from at_gateway import Drill
from langchain.agents import create_agent
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from reprieve import Bound, Policy
from reprieve.integrations import langchain as for_langchain
from reprieve.integrations import litellm as for_litellm
from reprieve.integrations import openai_agents as for_agents
from reprieve.integrations import pydantic_ai as for_pydantic_ai

agents.set_tracing_disabled(True)
litellm.suppress_debug_info = True

Rules = Policy | Bound
Ask = Callable[[Drill, str, Rules, int], str]
#: Takes each piece of text as it comes.
Stream = Callable[[Drill, str, Rules, Callable[[str], Any]], None]


class Word(BaseModel):
    """What an answer in JSON, or a call of a tool, is at the gateway."""

    word: str
    count: int


def client(drill: Drill) -> openai.AsyncOpenAI:
    """With the retries that it has by default."""
    return openai.AsyncOpenAI(base_url=drill.url, api_key="none", default_headers=drill.headers)


# --- LangChain ---


def chat(drill: Drill, **options: Any) -> ChatOpenAI:
    """With the retries that it has by default."""
    fields: dict[str, Any] = {"base_url": drill.url, "api_key": "none", "default_headers": drill.headers, **options}
    return ChatOpenAI(model="model-1", http_async_client=httpx2.AsyncClient(), **fields)


def resilient_chat(drill: Drill, policy: Rules, models: int = 1) -> for_langchain.ResilientChatModel:
    return for_langchain.resilient(chat(drill), policy, fallbacks=[chat(drill) for _ in range(models - 1)])


def langchain(drill: Drill, text: str, policy: Rules, models: int) -> str:
    return str(resilient_chat(drill, policy, models).invoke(text).content)


def langchain_async(drill: Drill, text: str, policy: Rules, models: int) -> str:
    return str(asyncio.run(resilient_chat(drill, policy, models).ainvoke(text)).content)


def langchain_pipe(drill: Drill, text: str, policy: Rules, models: int) -> str:
    prompt = ChatPromptTemplate.from_template("{text}")
    chains = [chat(drill) | StrOutputParser() for _ in range(models)]
    pipe = prompt | for_langchain.resilient(chains[0], policy, fallbacks=chains[1:])
    return str(pipe.invoke({"text": text}))


def agent(drill: Drill, policy: Rules, models: int = 1, tools: Any = (), **options: Any) -> Any:
    fallbacks = [chat(drill) for _ in range(models - 1)]
    middleware = for_langchain.ResilientMiddleware(policy, fallbacks=fallbacks, tools=options.pop("tool_policy", None))
    return create_agent(chat(drill), list(tools), middleware=[middleware], **options)


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def langchain_agent(drill: Drill, text: str, policy: Rules, models: int) -> str:
    return str(agent(drill, policy, models).invoke(said(text))["messages"][-1].content)


def langchain_agent_async(drill: Drill, text: str, policy: Rules, models: int) -> str:
    return str(asyncio.run(agent(drill, policy, models).ainvoke(said(text)))["messages"][-1].content)


def langchain_stream(drill: Drill, text: str, policy: Rules, take: Callable[[str], Any]) -> None:
    for chunk in resilient_chat(drill, policy).stream(text):
        take(str(chunk.content))


def langchain_stream_async(drill: Drill, text: str, policy: Rules, take: Callable[[str], Any]) -> None:
    async def run() -> None:
        async for chunk in resilient_chat(drill, policy).astream(text):
            take(str(chunk.content))

    asyncio.run(run())


def langchain_pipe_stream(drill: Drill, text: str, policy: Rules, take: Callable[[str], Any]) -> None:
    pipe = ChatPromptTemplate.from_template("{text}") | resilient_chat(drill, policy) | StrOutputParser()
    for piece in pipe.stream({"text": text}):
        take(piece)


# --- LiteLLM ---


def of_litellm(drill: Drill) -> dict[str, Any]:
    fields = {"api_base": drill.url, "api_key": "none", "extra_headers": drill.headers}
    return {"model": "openai/model-1", **fields}


def user(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def with_litellm(drill: Drill, text: str, policy: Rules, models: int) -> str:
    llm = for_litellm.resilient(policy, fallbacks=[of_litellm(drill) for _ in range(models - 1)])
    return str(llm.completion(messages=user(text), **of_litellm(drill)).choices[0].message.content)


def with_litellm_async(drill: Drill, text: str, policy: Rules, models: int) -> str:
    llm = for_litellm.resilient(policy, fallbacks=[of_litellm(drill) for _ in range(models - 1)])
    answer = asyncio.run(llm.acompletion(messages=user(text), **of_litellm(drill)))
    return str(answer.choices[0].message.content)


def litellm_stream(drill: Drill, text: str, policy: Rules, take: Callable[[str], Any]) -> None:
    llm = for_litellm.resilient(policy)
    chunks: Iterator[Any] = llm.completion(messages=user(text), stream=True, **of_litellm(drill))
    for chunk in chunks:
        take(chunk.choices[0].delta.content or "")


def litellm_stream_async(drill: Drill, text: str, policy: Rules, take: Callable[[str], Any]) -> None:
    async def run() -> None:
        llm = for_litellm.resilient(policy)
        chunks: AsyncIterator[Any] = await llm.acompletion(messages=user(text), stream=True, **of_litellm(drill))
        async for chunk in chunks:
            take(chunk.choices[0].delta.content or "")

    asyncio.run(run())


# --- pydantic-ai ---


def resilient_model(drill: Drill, policy: Rules, models: int = 1) -> for_pydantic_ai.ResilientModel:
    def model() -> OpenAIChatModel:
        made = client(drill) if for_pydantic_ai.SWITCHES else client(drill).with_options(max_retries=0)
        return OpenAIChatModel("model-1", provider=OpenAIProvider(openai_client=made))

    return for_pydantic_ai.ResilientModel([model() for _ in range(models)], policy)


def pydantic_ai(drill: Drill, text: str, policy: Rules, models: int) -> str:
    async def run() -> str:
        return (await Agent(resilient_model(drill, policy, models)).run(text)).output

    return asyncio.run(run())


def pydantic_ai_stream(drill: Drill, text: str, policy: Rules, take: Callable[[str], Any]) -> None:
    async def run() -> None:
        async with Agent(resilient_model(drill, policy)).run_stream(text) as result:
            async for piece in result.stream_text(delta=True, debounce_by=None):
                take(piece)

    asyncio.run(run())


# --- OpenAI Agents ---


def agents_model(drill: Drill, policy: Rules, models: int = 1) -> for_agents.ResilientModel:
    made = [agents.OpenAIChatCompletionsModel("model-1", client(drill)) for _ in range(models)]
    return for_agents.ResilientModel(made, policy)


def openai_agents(drill: Drill, text: str, policy: Rules, models: int) -> str:
    async def run() -> str:
        helper = agents.Agent(name="Helper", model=agents_model(drill, policy, models))
        return str((await agents.Runner.run(helper, text)).final_output)

    return asyncio.run(run())


def responses(drill: Drill, policy: Rules, models: int = 1) -> agents.RunConfig:
    """The SDK's own provider, over the responses API."""
    own = agents.OpenAIProvider(openai_client=client(drill), use_responses=True)
    provider = for_agents.ResilientProvider(policy, provider=own, fallbacks=["model-2"] * (models - 1))
    return agents.RunConfig(model_provider=provider)


def openai_agents_provider(drill: Drill, text: str, policy: Rules, models: int) -> str:
    async def run() -> str:
        helper = agents.Agent(name="Helper", model="model-1")
        return str((await agents.Runner.run(helper, text, run_config=responses(drill, policy, models))).final_output)

    return asyncio.run(run())


async def _take_deltas(streamed: agents.RunResultStreaming, take: Callable[[str], Any]) -> None:
    async for event in streamed.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            take(event.data.delta)


def openai_agents_stream(drill: Drill, text: str, policy: Rules, take: Callable[[str], Any]) -> None:
    async def run() -> None:
        helper = agents.Agent(name="Helper", model=agents_model(drill, policy))
        await _take_deltas(agents.Runner.run_streamed(helper, text), take)

    asyncio.run(run())


def openai_agents_provider_stream(drill: Drill, text: str, policy: Rules, take: Callable[[str], Any]) -> None:
    async def run() -> None:
        helper = agents.Agent(name="Helper", model="model-1")
        await _take_deltas(agents.Runner.run_streamed(helper, text, run_config=responses(drill, policy)), take)

    asyncio.run(run())


ASKS: dict[str, Ask] = {
    "langchain": langchain,
    "langchain async": langchain_async,
    "langchain pipe": langchain_pipe,
    "langchain agent": langchain_agent,
    "langchain agent async": langchain_agent_async,
    "litellm": with_litellm,
    "litellm async": with_litellm_async,
    "pydantic-ai": pydantic_ai,
    "openai-agents": openai_agents,
    "openai-agents provider": openai_agents_provider,
}
STREAMS: dict[str, Stream] = {
    "langchain": langchain_stream,
    "langchain async": langchain_stream_async,
    "langchain pipe": langchain_pipe_stream,
    "litellm": litellm_stream,
    "litellm async": litellm_stream_async,
    "pydantic-ai": pydantic_ai_stream,
    "openai-agents": openai_agents_stream,
    "openai-agents provider": openai_agents_provider_stream,
}
