"""Evidence from the answers that real clients raise for: status, headers, body, and what the SDKs name."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
import warnings
from typing import cast

import httpx
import pytest
import requests
from evidence_clients import (
    CLIENTS,
    PATIENT,
    Client,
    call_aiohttp,
    call_anthropic,
    call_botocore,
    call_genai,
    call_openai,
    call_requests,
    only,
    seen,
)
from failing import failure_of
from failing_server import ERROR, MIB

from reprieve._evidence import evidence_of

ANSWERING = [name for name in CLIENTS if name != "urllib3"]  # urllib3 raises for no status


@only(*ANSWERING)
@pytest.mark.parametrize("status", [400, 429, 500, 529])
def test_a_status_and_its_headers(server: str, call: Client, status: int) -> None:
    evidence = seen(lambda: call(f"{server}/status/{status}"))
    assert evidence["status"] == status
    assert ["retry-after", "7"] in evidence["headers"]
    assert all(name == name.lower() for name, _ in evidence["headers"])
    assert "cancelled" not in evidence
    assert "os_code" not in evidence


@only(*ANSWERING)
def test_headers_that_are_not_utf8(server: str, call: Client) -> None:
    headers = dict(seen(lambda: call(f"{server}/status/503"))["headers"])
    assert headers["x-latin"].startswith("caf")


@only("httpx", "httpx2", "urllib", "aiohttp")
def test_repeated_headers_stay_repeated(server: str, call: Client) -> None:
    headers = seen(lambda: call(f"{server}/status/503"))["headers"]
    assert [value for name, value in headers if name == "x-twice"] == ["one", "two"]


BODIES: dict[str, object] = {
    "openai": ERROR["error"],  # the SDK unwraps it
    "openai_async": ERROR["error"],
    "anthropic": ERROR,
    "genai": ERROR,
    "requests": json.dumps(ERROR).encode(),
    "httpx": json.dumps(ERROR).encode(),
    "httpx2": json.dumps(ERROR).encode(),
    "aiohttp": None,  # raise_for_status does not read it
    "urllib": None,  # is still to be read
}


@only(*BODIES)
def test_the_body_as_the_client_gives_it(server: str, call: Client, request: pytest.FixtureRequest) -> None:
    expected = BODIES[request.node.callspec.id]
    assert seen(lambda: call(f"{server}/status/429")).get("body") == expected


@only("openai", "openai_async", "anthropic", "requests", "httpx", "httpx2")
def test_a_body_that_is_no_json(server: str, call: Client) -> None:
    evidence = seen(lambda: call(f"{server}/html/502"))
    assert evidence["status"] == 502
    assert evidence["body"] in ("<html>Bad Gateway</html>", b"<html>Bad Gateway</html>")


@only(*(name for name in ANSWERING if name != "genai"))
def test_a_body_over_a_mebibyte_is_absent(server: str, call: Client) -> None:
    assert "body" not in seen(lambda: call(f"{server}/big/500"))


def test_genai_which_wraps_the_text_gives_no_oversized_body_either(server: str) -> None:
    evidence = seen(lambda: call_genai(f"{server}/big/500"))
    assert evidence["status"] == 500
    assert len(str(evidence.get("body", ""))) <= MIB


def test_openai_names_code_type_and_message(server: str) -> None:
    evidence = seen(lambda: call_openai(f"{server}/status/429"))
    assert evidence["provider_code"] == "rate_limit_exceeded"
    assert evidence["provider_type"] == "tokens"
    assert evidence["message"] == "slow down, 请求过于频繁"
    assert evidence["error_types"][:2] == ["openai.RateLimitError", "openai.APIStatusError"]


def test_anthropic_names_type_and_message(server: str) -> None:
    evidence = seen(lambda: call_anthropic(f"{server}/status/529"))
    assert evidence["provider_type"] == "tokens"
    assert evidence["message"] == "slow down, 请求过于频繁"
    assert evidence["error_types"][0] == "anthropic.OverloadedError"


def test_genai_names_its_status(server: str) -> None:
    evidence = seen(lambda: call_genai(f"{server}/google/429"))
    assert evidence["provider_code"] == "RESOURCE_EXHAUSTED"
    assert evidence["message"] == "quota"
    assert evidence["body"]["error"]["details"][0]["retryDelay"] == "12s"


def test_genai_prose_is_no_code(server: str) -> None:
    assert "provider_code" not in seen(lambda: call_genai(f"{server}/html/502"))


def test_botocore_names_its_code(server: str) -> None:
    evidence = seen(lambda: call_botocore(f"{server}/aws/400"))
    assert evidence["provider_code"] == "ThrottlingException"
    assert evidence["message"] == "Rate exceeded"
    assert evidence["status"] == 400
    assert evidence["body"]["Error"]["Code"] == "ThrottlingException"
    assert "ResponseMetadata" not in evidence["body"]


def test_a_falsy_response_is_a_response(server: str) -> None:
    error = failure_of(lambda: call_requests(f"{server}/status/500"))
    assert not cast(requests.HTTPError, error).response
    assert evidence_of(error)["status"] == 500


def test_an_unread_body_is_not_read(server: str) -> None:
    response = requests.get(f"{server}/status/500", stream=True, timeout=PATIENT)
    evidence = seen(response.raise_for_status)
    assert (evidence["status"], "body" in evidence, response.raw.tell()) == (500, False, 0)
    response.close()
    with httpx.stream("GET", f"{server}/status/500", timeout=PATIENT) as streamed:
        assert "body" not in seen(streamed.raise_for_status)
        assert not streamed.is_stream_consumed
    error = failure_of(lambda: urllib.request.urlopen(f"{server}/status/500"))
    assert "body" not in evidence_of(error)
    assert json.loads(cast(urllib.error.HTTPError, error).read()) == ERROR


def test_nothing_warns(server: str) -> None:
    error = failure_of(lambda: call_aiohttp(f"{server}/status/500"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evidence_of(error)["status"] == 500
