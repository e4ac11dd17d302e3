"""Real clients at the gateway, each opening a stream of the same answer; what its events say is text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx
import openai
from at_gateway import Drill
from google import genai
from google.genai import types as genai_types

WORDS = ["The", " gateway", " answers", ":", " all", " is", " well", ",", " 世界é"]


class Open:
    """Opens streams of one client: for a user's words, and what of the answer is there already."""

    def __init__(self, client: Any, function: Callable[[str, str], Any]) -> None:
        self.client, self.function = client, function
        #: What google-genai leaves to its user to close.
        self.http = _http_of(client)

    def __call__(self, marker: str, said: str) -> Any:
        return self.function(marker, said)

    def close(self) -> None:
        """Closes the client."""
        self.client.close()

    async def aclose(self) -> None:
        """Closes the client in its loop."""
        client = getattr(self.client, "aio", self.client)
        await (client.aclose() if hasattr(client, "aclose") else client.close())
        if isinstance(self.client, genai.Client):
            await self.http.aclose()


@dataclass(frozen=True)
class Client:
    """How one client opens a stream, and how its events are read."""

    name: str
    is_async: bool
    make: Callable[[Drill, float], Open]
    text: Callable[[Any], str | None]
    #: Events that come before the first content and are no content.
    opening: int


def turns(marker: str, said: str, assistant: str = "assistant") -> list[dict[str, str]]:
    """The messages of a request; a last one of the assistant's is what the answer goes on from."""
    messages = [{"role": "user", "content": marker}]
    return [*messages, {"role": assistant, "content": said}] if said else messages


def _openai(drill: Drill, timeout: float, *, later: bool) -> Any:
    kind: Any = openai.AsyncOpenAI if later else openai.OpenAI
    return kind(base_url=drill.url, api_key="none", max_retries=0, timeout=timeout, default_headers=drill.headers)


def _anthropic(drill: Drill, timeout: float, *, later: bool) -> Any:
    kind: Any = anthropic.AsyncAnthropic if later else anthropic.Anthropic
    return kind(base_url=drill.origin, api_key="none", max_retries=0, timeout=timeout, default_headers=drill.headers)


def _genai(drill: Drill, timeout: float) -> genai.Client:
    options = genai_types.HttpOptions(
        base_url=drill.origin,
        headers=drill.headers,
        timeout=round(timeout * 1000),
        httpx_async_client=httpx.AsyncClient(),  # over aiohttp it sends again by itself what was reset
    )
    return genai.Client(api_key="none", http_options=options)


def _http_of(client: Any) -> Any:
    return client._api_client._http_options.httpx_async_client if isinstance(client, genai.Client) else None


def chat(*, later: bool) -> Callable[[Drill, float], Open]:
    def make(drill: Drill, timeout: float) -> Open:
        client = _openai(drill, timeout, later=later)
        usage = {"include_usage": True}
        return Open(
            client,
            lambda marker, said: client.chat.completions.create(
                model="m", messages=turns(marker, said), stream=True, stream_options=usage
            ),
        )

    return make


def chat_manager(*, later: bool) -> Callable[[Drill, float], Open]:
    def make(drill: Drill, timeout: float) -> Open:
        client = _openai(drill, timeout, later=later)
        usage = {"include_usage": True}
        return Open(
            client,
            lambda marker, said: client.chat.completions.stream(
                model="m", messages=turns(marker, said), stream_options=usage
            ),
        )

    return make


def responses(*, later: bool) -> Callable[[Drill, float], Open]:
    def make(drill: Drill, timeout: float) -> Open:
        client = _openai(drill, timeout, later=later)
        return Open(
            client, lambda marker, said: client.responses.create(model="m", input=turns(marker, said), stream=True)
        )

    return make


def messages(*, later: bool) -> Callable[[Drill, float], Open]:
    def make(drill: Drill, timeout: float) -> Open:
        client = _anthropic(drill, timeout, later=later)
        return Open(
            client,
            lambda marker, said: client.messages.create(
                model="m", max_tokens=99, messages=turns(marker, said), stream=True
            ),
        )

    return make


def messages_manager(*, later: bool) -> Callable[[Drill, float], Open]:
    def make(drill: Drill, timeout: float) -> Open:
        client = _anthropic(drill, timeout, later=later)
        return Open(
            client, lambda marker, said: client.messages.stream(model="m", max_tokens=99, messages=turns(marker, said))
        )

    return make


def contents(*, later: bool) -> Callable[[Drill, float], Open]:
    def make(drill: Drill, timeout: float) -> Open:
        client = _genai(drill, timeout)
        models = client.aio.models if later else client.models

        def function(marker: str, said: str) -> Any:
            parts = [
                genai_types.Content(role=turn["role"], parts=[genai_types.Part(text=turn["content"])])
                for turn in turns(marker, said, "model")
            ]
            return models.generate_content_stream(model="m", contents=parts)

        return Open(client, function)

    return make


def _of_chat(event: Any) -> str | None:
    return event.choices[0].delta.content if event.choices else None


def _of_chat_manager(event: Any) -> str | None:
    return _of_chat(event.chunk) if event.type == "chunk" else None


def _of_responses(event: Any) -> str | None:
    return event.delta if event.type == "response.output_text.delta" else None


def _of_messages(event: Any) -> str | None:
    return event.delta.text if event.type == "content_block_delta" else None


def _of_contents(event: Any) -> str | None:
    return event.text


CLIENTS = [
    Client(f"{name}{'-async' if later else ''}", later, make(later=later), text, opening)
    for name, make, text, opening in (
        ("chat", chat, _of_chat, 1),
        ("chat-manager", chat_manager, _of_chat_manager, 2),
        ("responses", responses, _of_responses, 4),
        ("messages", messages, _of_messages, 2),
        ("messages-manager", messages_manager, _of_messages, 2),
        ("gemini", contents, _of_contents, 0),
    )
    for later in (False, True)
]
