"""Streams of the clients that `wrap` knows: how each is asked for one, what its items say, and how they are taken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from at_gateway import Drill
from sdk_clients import MODEL, QUICK, SDKS, messages, run

import reprieve


def chat(client: Any, text: str, **options: Any) -> Any:
    usage: Any = {"include_usage": True}
    return client.chat.completions.create(
        model=MODEL, messages=messages(text), stream=True, stream_options=usage, **options
    )


def responses(client: Any, text: str) -> Any:
    return client.responses.create(model=MODEL, input=text, stream=True)


def claude(client: Any, text: str, **options: Any) -> Any:
    return client.messages.create(model=MODEL, max_tokens=50, messages=messages(text), stream=True, **options)


def gemini(client: Any, text: str) -> Any:
    return client.models.generate_content_stream(model=MODEL, contents=text)


def gemini_async(client: Any, text: str) -> Any:
    return client.aio.models.generate_content_stream(model=MODEL, contents=text)


def converse(client: Any, text: str) -> Any:
    content = [{"text": text}]
    return client.converse_stream(modelId=MODEL, messages=[{"role": "user", "content": content}])["stream"]


def invoked(client: Any, text: str) -> Any:
    body = json.dumps({"max_tokens": 9, "messages": messages(text)})
    return client.invoke_model_with_response_stream(modelId=MODEL, body=body)["body"]


def said(item: Any) -> str:
    """The text of an item of any of them."""
    if isinstance(item, dict):
        inner = json.loads(item["chunk"]["bytes"]) if "chunk" in item else item
        delta = inner.get("delta") or inner.get("contentBlockDelta", {}).get("delta") or {}
        return str(delta.get("text") or "")
    if hasattr(item, "choices"):
        return str(item.choices[0].delta.content or "") if item.choices else ""
    if hasattr(item, "candidates"):
        return str(item.text or "")
    delta = getattr(item, "delta", None)
    return delta if isinstance(delta, str) else str(getattr(delta, "text", None) or "")


WAYS: dict[str, tuple[str, Any]] = {
    "openai chat": ("openai", chat),
    "openai chat async": ("openai async", chat),
    "openai responses": ("openai", responses),
    "openai responses async": ("openai async", responses),
    "azure": ("azure", chat),
    "anthropic": ("anthropic", claude),
    "anthropic async": ("anthropic async", claude),
    "genai": ("genai", gemini),
    "genai async": ("genai async", gemini_async),
    "genai httpx": ("genai httpx", gemini_async),
    "bedrock converse": ("bedrock", converse),
    "bedrock invoke": ("bedrock", invoked),
}


class Way:
    """One client and one way to stream from it."""

    def __init__(self, name: str, drill: Drill) -> None:
        sdk, self._ask = WAYS[name]
        self.sdk, self.drill, self.lines = SDKS[sdk], drill, list[str]()

    def wrapped(self, *, check: Any = None, **fields: Any) -> Any:
        """The client under a policy of these fields."""
        prices: Any = {MODEL: {"input": 100, "output": 1_000}}
        policy: Any = {**QUICK, **fields}
        return reprieve.wrap(self.sdk.make(self.drill), policy, sink=self.lines.append, prices=prices, check=check)

    def open(self, client: Any, text: str) -> Any:
        """A stream of the client's."""
        answer = self._ask(client, text)
        return run(answer) if self.sdk.awaited else answer

    def items(self, stream: Any) -> Iterator[Any]:
        """Its items, one by one, of a client of either kind."""
        if not self.sdk.awaited:
            yield from stream
            return
        awaited = aiter(stream)
        while True:
            try:
                yield run(anext(awaited))
            except StopAsyncIteration:
                return

    def text(self, client: Any, text: str) -> str:
        return "".join(map(said, self.items(self.open(client, text))))

    def until_error(self, stream: Any) -> tuple[list[Any], Exception]:
        """The items, and what is raised after them."""
        got: list[Any] = []
        try:
            for item in self.items(stream):
                got.append(item)
        except Exception as error:
            return got, error
        raise AssertionError("nothing was raised")

    @property
    def ended(self) -> Any:
        """The record of the call's end."""
        return json.loads(self.lines[-1])
