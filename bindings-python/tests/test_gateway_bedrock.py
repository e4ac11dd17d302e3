"""The gateway's Bedrock streams, read by botocore: they are binary, with checksums that it verifies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import botocore.exceptions
import pytest
from at_gateway import ANSWER, Drill, gateway
from sdk_clients import MODEL, SDKS


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with gateway() as origin:
        yield SDKS["bedrock"].make(Drill(origin), retries={"total_max_attempts": 1})


def converse(client: Any, text: str) -> Iterator[dict[str, Any]]:
    messages = [{"role": "user", "content": [{"text": text}]}]
    yield from client.converse_stream(modelId=MODEL, messages=messages)["stream"]


def test_a_whole_stream(client: Any) -> None:
    events = list(converse(client, "hello"))
    kinds = [next(iter(event)) for event in events]
    assert kinds == ["messageStart", *["contentBlockDelta"] * 9, "contentBlockStop", "messageStop", "metadata"]
    said = "".join(event["contentBlockDelta"]["delta"]["text"] for event in events if "contentBlockDelta" in event)
    assert said == ANSWER
    assert events[-1]["metadata"]["usage"] == {"inputTokens": 8, "outputTokens": 9, "totalTokens": 17}


def test_a_stream_that_fails(client: Any) -> None:
    with pytest.raises(botocore.exceptions.EventStreamError, match="serviceUnavailableException"):
        list(converse(client, "#[sse-error=2]"))
    with pytest.raises(botocore.exceptions.ClientError, match="ThrottlingException"):
        list(converse(client, "#[429]"))


def test_an_invoked_stream(client: Any) -> None:
    body = json.dumps({"anthropic_version": "x", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]})
    answer = client.invoke_model_with_response_stream(modelId=MODEL, body=body)
    events = [json.loads(event["chunk"]["bytes"]) for event in answer["body"]]
    assert "".join(event["delta"]["text"] for event in events if event["type"] == "content_block_delta") == ANSWER
