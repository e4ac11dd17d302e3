"""The clients that `wrap` knows, each with what it takes to make one, to ask it something, and what it raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import anthropic
import boto3
import botocore.config
import botocore.exceptions
import httpx
import httpx2
import openai
from at_gateway import Drill
from google import genai

import reprieve

MODEL = "model-1"
#: The fields of a policy that waits for next to nothing.
QUICK: dict[str, Any] = {"max_attempts": 3, "backoff": {"base": 0.01, "max": 0.02}, "total_timeout": 300}
LOOP = asyncio.new_event_loop()


def messages(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


class Sdk(NamedTuple):
    """One client."""

    make: Callable[..., Any]
    #: The text of an answer.
    ask: Callable[..., str]
    #: What a 4xx or 5xx raises, and what an attempt that takes too long.
    refused: type[Exception]
    timed_out: tuple[type[Exception], ...]
    #: How many requests of its own a client with its retries on sends to a server that answers 500.
    alone: int
    awaited: bool = False

    def asked(self, client: Any, text: str, **options: Any) -> str:
        """The answer, from a client of either kind."""
        answer = self.ask(client, text, **options)
        return run(answer) if asyncio.iscoroutine(answer) else answer

    def called(self, policy: reprieve.Policy, client: Any, text: str) -> str:
        """The answer, asked for within a policy."""
        if not self.awaited:
            return policy.call(self.ask, client, text)

        async def ask() -> str:
            answer: Any = self.ask(client, text)
            return str(await answer)

        return str(run(policy.call(ask)))


def run(coroutine: Any) -> Any:
    return LOOP.run_until_complete(coroutine)


# --- openai ---


def _openai(kind: Any) -> Callable[..., Any]:
    def make(drill: Drill, **options: Any) -> Any:
        return kind(base_url=drill.url, api_key="none", default_headers=drill.headers, **options)

    return make


def _azure(kind: Any) -> Callable[..., Any]:
    def make(drill: Drill, **options: Any) -> Any:
        options = {"azure_endpoint": drill.origin, "api_key": "none", "api_version": "1", **options}
        return kind(default_headers=drill.headers, **options)

    return make


def ask_openai(client: Any, text: str, **options: Any) -> Any:
    return client.chat.completions.create(model=MODEL, messages=messages(text), **options).choices[0].message.content


async def ask_openai_async(client: Any, text: str, **options: Any) -> Any:
    answer = await client.chat.completions.create(model=MODEL, messages=messages(text), **options)
    return answer.choices[0].message.content


def completion(client: Any, text: str = "#[500,ok]", **options: Any) -> Any:
    """A completion, by a client of openai's."""
    return client.chat.completions.create(model=MODEL, messages=messages(text), **options)


# --- anthropic ---


def _anthropic(kind: Any) -> Callable[..., Any]:
    def make(drill: Drill, **options: Any) -> Any:
        return kind(base_url=drill.origin, api_key="none", default_headers=drill.headers, **options)

    return make


def ask_anthropic(client: Any, text: str, **options: Any) -> Any:
    answer = client.messages.create(model=MODEL, max_tokens=50, messages=messages(text), **options)
    return answer.content[0].text


async def ask_anthropic_async(client: Any, text: str, **options: Any) -> Any:
    answer = await client.messages.create(model=MODEL, max_tokens=50, messages=messages(text), **options)
    return answer.content[0].text


# --- google-genai ---


def _genai(drill: Drill, **options: Any) -> Any:
    http = {"base_url": drill.origin, "headers": drill.headers, **options}
    return genai.Client(api_key="none", http_options=genai.types.HttpOptions(**http))


def _genai_httpx(drill: Drill, **options: Any) -> Any:
    """Where aiohttp is installed, awaited requests go through it, unless there is a client of the user's own."""
    return _genai(drill, httpx_async_client=httpx.AsyncClient(), **options)


def ask_genai(client: Any, text: str, **options: Any) -> Any:
    config = genai.types.GenerateContentConfig(**options) if options else None
    return client.models.generate_content(model=MODEL, contents=text, config=config).text


async def ask_genai_async(client: Any, text: str, **options: Any) -> Any:
    config = genai.types.GenerateContentConfig(**options) if options else None
    return (await client.aio.models.generate_content(model=MODEL, contents=text, config=config)).text


# --- boto3 ---


def _bedrock(drill: Drill, **options: Any) -> Any:
    client = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=drill.origin,
        aws_access_key_id="none",
        aws_secret_access_key="none",
        config=botocore.config.Config(**options),
    )

    def add(request: Any, **_others: Any) -> None:
        for name, value in drill.headers.items():
            request.headers[name] = value

    client.meta.events.register("before-send.bedrock-runtime.*", add)
    return client


def ask_bedrock(client: Any, text: str, **options: Any) -> Any:
    answer = client.converse(modelId=MODEL, messages=[{"role": "user", "content": [{"text": text}]}], **options)
    return answer["output"]["message"]["content"][0]["text"]


SDKS: dict[str, Sdk] = {
    "openai": Sdk(_openai(openai.OpenAI), ask_openai, openai.APIStatusError, (openai.APITimeoutError,), 3),
    "openai async": Sdk(
        _openai(openai.AsyncOpenAI), ask_openai_async, openai.APIStatusError, (openai.APITimeoutError,), 3, True
    ),
    "azure": Sdk(_azure(openai.AzureOpenAI), ask_openai, openai.APIStatusError, (openai.APITimeoutError,), 3),
    "azure async": Sdk(
        _azure(openai.AsyncAzureOpenAI), ask_openai_async, openai.APIStatusError, (openai.APITimeoutError,), 3, True
    ),
    "anthropic": Sdk(
        _anthropic(anthropic.Anthropic), ask_anthropic, anthropic.APIStatusError, (anthropic.APITimeoutError,), 3
    ),
    "anthropic async": Sdk(
        _anthropic(anthropic.AsyncAnthropic),
        ask_anthropic_async,
        anthropic.APIStatusError,
        (anthropic.APITimeoutError,),
        3,
        True,
    ),
    "genai": Sdk(_genai, ask_genai, genai.errors.APIError, (httpx2.TimeoutException,), 1),
    "genai async": Sdk(_genai, ask_genai_async, genai.errors.APIError, (TimeoutError,), 1, True),
    "genai httpx": Sdk(
        _genai_httpx, ask_genai_async, genai.errors.APIError, (TimeoutError, httpx.TimeoutException), 1, True
    ),
    "bedrock": Sdk(_bedrock, ask_bedrock, botocore.exceptions.ClientError, (botocore.exceptions.ReadTimeoutError,), 3),
}


@contextmanager
def closing(client: Any) -> Iterator[Any]:
    """The client, closed at the end, whatever its way of closing is."""
    try:
        yield client
    finally:
        closed = client.close()
        if asyncio.iscoroutine(closed):
            run(closed)
