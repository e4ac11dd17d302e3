"""Requests of wrapped clients that change between attempts, and bodies that are read as they are sent."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from at_gateway import ANSWER, Drill
from sdk_clients import MODEL, QUICK, SDKS, completion

import reprieve
from reprieve import ConfigError, Policy

# --- requests that change --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["openai", "openai async", "anthropic", "genai", "genai async"])
def test_prepare_adapts_the_request_to_its_target(drill: Drill, name: str) -> None:
    sdk = SDKS[name]
    seen: list[tuple[str, str]] = []

    def prepare(request: dict[str, Any], target: str) -> dict[str, Any]:
        seen.append((target, request["model"]))
        return {**request, "model": f"{target}-model"}

    lines: list[str] = []
    prices: Any = {"backup-model": {"input": 1, "output": 1}}
    policy = Policy.preset("llm").replace(backoff={"base": 0.01})
    client = reprieve.wrap(sdk.make(drill), policy, prepare=prepare, sink=lines.append, prices=prices)
    assert sdk.asked(client, "#[500x3]") == ANSWER
    assert seen == [("primary", MODEL)] * 3 + [("backup", MODEL)]
    assert drill.played() == ["500", "500", "500", "ok"]
    assert len({visit["body_hash"] + visit["path"] for visit in drill.visits()}) == 2
    assert json.loads(lines[-1])["cost"] is not None, "the model that answered is the one that is paid"


@pytest.mark.parametrize("name", ["openai", "anthropic async", "genai", "bedrock"])
def test_a_request_is_repaired(drill: Drill, name: str) -> None:
    sdk = SDKS[name]
    field = "contents" if name == "genai" else "messages"
    part = "parts" if name == "genai" else "content"

    def shorter(request: dict[str, Any], _failure: reprieve.Failure) -> dict[str, Any]:
        text: Any = "short" if isinstance(request[field][0][part], str) else [{"text": "short"}]
        return {**request, field: [{"role": "user", part: text}]}

    client = reprieve.wrap(sdk.make(drill), QUICK, repair={"context_length_exceeded": shorter})
    assert sdk.asked(client, "#[context]") == ANSWER
    assert drill.played() == ["context", "ok"]


def test_an_answer_is_checked(drill: Drill) -> None:
    seen: list[str] = []

    def check(answer: Any) -> str | None:
        seen.append(answer.choices[0].message.content)
        return "invalid_output" if len(seen) < 2 else None

    client = reprieve.wrap(SDKS["openai"].make(drill), {**QUICK, "retry_on": ["invalid_output"]}, check=check)
    assert completion(client, "hello").choices[0].message.content == ANSWER
    assert seen == [ANSWER, ANSWER]
    with pytest.raises(ConfigError, match=r"check: .*google-genai"):
        reprieve.wrap(SDKS["genai"].make(drill), QUICK, check=check)


# --- bodies that are read as they are sent ---------------------------------------------------------------------------


class Once:
    """A file that can only be read."""

    def __init__(self, content: bytes) -> None:
        self._left = content

    def read(self, most: int = -1) -> bytes:
        most = len(self._left) if most < 0 else most
        part, self._left = self._left[:most], self._left[most:]
        return part


def sent(drill: Drill, **body: Any) -> list[Any]:
    """The bodies that arrived of a request to a server that fails twice."""
    made = SDKS["openai"].make(drill).with_options(base_url=drill.origin)
    client = reprieve.wrap(made, QUICK)
    client.post("/any?q=%23[500,503,ok]", cast_to=object, **body)
    return [(visit["body_length"], visit["body_hash"]) for visit in drill.visits()]


@pytest.mark.parametrize(
    "content",
    [
        lambda: b"0123456789",
        lambda: io.BytesIO(b"0123456789"),
        lambda: Once(b"0123456789"),
        lambda: (part for part in (b"01234", b"56789")),
    ],
    ids=["bytes", "file", "read once", "generator"],
)
def test_a_body_is_the_same_in_each_attempt(drill: Drill, content: Any) -> None:
    bodies = sent(drill, content=content())
    assert len(bodies) == 3
    assert {length for length, _ in bodies} == {10}
    assert len(set(bodies)) == 1


@pytest.mark.parametrize("file", [lambda: io.BytesIO(b"x" * 500), lambda: Once(b"x" * 500)], ids=["file", "read once"])
def test_files_are_the_same_in_each_attempt(drill: Drill, file: Any) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=same"}
    bodies = sent(drill, files=[("file", ("a.txt", file()))], body={"a": "b"}, options={"headers": headers})
    assert len(bodies) == 3
    assert {length > 500 for length, _ in bodies} == {True}
    assert len(set(bodies)) == 1


def test_a_file_goes_on_where_it_stood(drill: Drill) -> None:
    file = io.BytesIO(b"0123456789")
    file.read(4)
    assert {length for length, _ in sent(drill, content=file)} == {6}


def test_a_body_that_cannot_be_sent_again_is_refused(drill: Drill) -> None:
    async def later() -> AsyncIterator[bytes]:
        yield b"x"

    with pytest.raises(ConfigError, match=r"content: a Once of more than 1048576 bytes.*bytes, or a seekable file"):
        sent(drill, content=Once(b"x" * 2_000_000))
    with pytest.raises(ConfigError, match=r"content: a async_generator is not allowed"):
        sent(drill, content=later())
    assert drill.visits() == []
