"""The clients and failures of the comparison: what each is asked, bare and under a policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import anthropic
import boto3  # type: ignore[import-untyped]
import httpx
import openai
import tenacity
from botocore.config import Config  # type: ignore[import-untyped]
from google import genai

import reprieve
from reprieve.integrations.httpx import RetryTransport

MODEL = "model-1"
TEXT = "The gateway answers: all is well, 世界é"

Fields = dict[str, Any]


def wrap_any(client: Any, policy: Fields) -> Any:
    fields: Any = policy
    return reprieve.wrap(client, fields)


class Failure(NamedTuple):
    """What goes wrong, by the gateway's marker, and the policy that is meant for it."""

    marker: str
    policy: Fields
    #: The answer is streamed.
    stream: bool = False
    #: The call is made within a framework that tries it three times.
    framework: bool = False


FAILURES: dict[str, Failure] = {
    "wrong key": Failure("#[401]", {}),
    "429, retry-after 2 s": Failure("#[retry-after=2]", {}),
    "overloaded three times": Failure("#[503x3]", {"max_attempts": 4}),
    "always 500, in a framework that tries 3 times": Failure("#[500]", {"max_attempts": 3}, framework=True),
    "connection lost amid a stream": Failure("#[sse-cut=3,ok]", {"stream": {"mode": "buffered"}}, stream=True),
    "stream cut after content": Failure("#[sse-eof=3,ok]", {"stream": {"mode": "buffered"}}, stream=True),
}


class Client(NamedTuple):
    """One client, and how it is asked; `None` for what it has no way to do."""

    make: Callable[[str, str], Any]
    ask: Callable[[Any, str], str]
    stream: Callable[[Any, str], Iterator[str]] | None
    wrap: Callable[[Any, Fields], Any] = wrap_any


def messages(text: str) -> Any:
    return [{"role": "user", "content": text}]


# --- openai ---


def make_openai(url: str, drill: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", default_headers={"x-drill-id": drill})


def ask_openai(client: openai.OpenAI, text: str) -> str:
    answer = client.chat.completions.create(model=MODEL, messages=messages(text))
    return answer.choices[0].message.content or ""


def stream_openai(client: openai.OpenAI, text: str) -> Iterator[str]:
    for chunk in client.chat.completions.create(model=MODEL, messages=messages(text), stream=True):
        yield (chunk.choices[0].delta.content or "") if chunk.choices else ""


# --- anthropic ---


def make_anthropic(url: str, drill: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key="none", default_headers={"x-drill-id": drill})


def ask_anthropic(client: anthropic.Anthropic, text: str) -> str:
    block = client.messages.create(model=MODEL, max_tokens=50, messages=messages(text)).content[0]
    return block.text if block.type == "text" else ""


def stream_anthropic(client: anthropic.Anthropic, text: str) -> Iterator[str]:
    with client.messages.stream(model=MODEL, max_tokens=50, messages=messages(text)) as stream:
        yield from stream.text_stream


# --- google-genai ---


def make_genai(url: str, drill: str) -> genai.Client:
    options = genai.types.HttpOptions(base_url=url, headers={"x-drill-id": drill})
    return genai.Client(api_key="none", http_options=options)


def ask_genai(client: genai.Client, text: str) -> str:
    return client.models.generate_content(model=MODEL, contents=text).text or ""


def stream_genai(client: genai.Client, text: str) -> Iterator[str]:
    for answer in client.models.generate_content_stream(model=MODEL, contents=text):
        yield answer.text or ""


# --- boto3 ---


def make_bedrock(url: str, drill: str) -> Any:
    keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none", "region_name": "us-east-1"}
    # A session of its own: making clients of the default one is not safe among threads.
    client: Any = boto3.session.Session(**keys).client("bedrock-runtime", endpoint_url=url, config=Config())

    def add(request: Any, **_others: Any) -> None:
        request.headers["x-drill-id"] = drill

    client.meta.events.register("before-send.bedrock-runtime.*", add)
    return client


def ask_bedrock(client: Any, text: str) -> str:
    answer = client.converse(modelId=MODEL, messages=[{"role": "user", "content": [{"text": text}]}])
    return str(answer["output"]["message"]["content"][0]["text"])


def stream_bedrock(client: Any, text: str) -> Iterator[str]:
    answer = client.converse_stream(modelId=MODEL, messages=[{"role": "user", "content": [{"text": text}]}])
    for event in answer["stream"]:
        yield event.get("contentBlockDelta", {}).get("delta", {}).get("text", "")


# --- httpx ---


def make_httpx(url: str, drill: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"x-drill-id": drill}, timeout=30)


def wrap_httpx(client: httpx.Client, policy: Fields) -> httpx.Client:
    transport = RetryTransport(reprieve.Policy(**policy), methods=["POST"])
    return httpx.Client(base_url=client.base_url, headers=client.headers, timeout=30, transport=transport)


def ask_httpx(client: httpx.Client, text: str) -> str:
    response = client.post("/v1/chat/completions", json={"model": MODEL, "messages": messages(text)})
    response.raise_for_status()
    return str(response.json()["choices"][0]["message"]["content"])


CLIENTS: dict[str, Client] = {
    "openai": Client(make_openai, ask_openai, stream_openai),
    "anthropic": Client(make_anthropic, ask_anthropic, stream_anthropic),
    "google-genai": Client(make_genai, ask_genai, stream_genai),
    "boto3 bedrock-runtime": Client(make_bedrock, ask_bedrock, stream_bedrock),
    "httpx": Client(make_httpx, ask_httpx, None, wrap_httpx),
}


def play(client: str, failure: str, how: str, url: str, drill: str) -> tuple[float, str] | None:
    """Seconds, and what the user saw; `None` where the client has no way to do this."""
    played, wrong = CLIENTS[client], FAILURES[failure]
    if wrong.stream and played.stream is None:
        return None
    made = played.make(url, drill)
    if how == "with":
        made = played.wrap(made, wrong.policy)
    began = time.monotonic()
    if wrong.stream:
        assert played.stream is not None
        saw = _streamed(played.stream(made, wrong.marker))
    else:
        saw = _asked(_framed(how, played.ask) if wrong.framework else played.ask, made, wrong.marker)
    return round(time.monotonic() - began, 2), saw


def _framed(how: str, ask: Callable[[Any, str], str]) -> Callable[[Any, str], str]:
    """The same within a framework that tries three times: with reprieve, its policy is one of reprieve's, too."""
    if how == "with":
        return reprieve.Policy(max_attempts=3)(ask)
    return tenacity.retry(stop=tenacity.stop_after_attempt(3), reraise=True)(ask)


def _asked(ask: Callable[[Any, str], str], client: Any, marker: str) -> str:
    try:
        return "the answer" if ask(client, marker) == TEXT else "another answer"
    except Exception as error:
        return type(error).__name__


def _streamed(words: Iterator[str]) -> str:
    got = ""
    try:
        for word in words:
            got += word
    except Exception as error:
        return f"{_much(got)}, then {type(error).__name__}"
    return "the answer" if got == TEXT else f"{_much(got)}, as if that was all"


def _much(text: str) -> str:
    count = len(text.split())
    return f"{count} words" if count else "nothing"
