"""What `wrap` refuses: clients, policies, options, prices and versions."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import openai
import pytest
import sdk_clients
from at_gateway import Drill
from sdk_clients import MODEL, QUICK, SDKS, messages

import reprieve
from reprieve import ConfigError, Policy


def test_an_unknown_object_is_refused() -> None:
    for thing in (object(), "client", httpx2.Client(), openai):
        with pytest.raises(ConfigError, match=r"openai\.OpenAI, AsyncOpenAI.*decorate the function"):
            reprieve.wrap(thing, "interactive")


def test_another_aws_service_is_refused() -> None:
    import boto3

    client = boto3.client("sts", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")
    with pytest.raises(ConfigError, match='a boto3 client for sts is not allowed; it takes one for "bedrock-runtime"'):
        reprieve.wrap(client, "interactive")


@pytest.mark.parametrize(
    ("policy", "match"),
    [(None, "a Policy, the name"), (3, "a Policy"), ("interactve", "interactve"), ({"max_atempts": 3}, "max_atempts")],
)
def test_a_policy_that_is_none_is_refused(drill: Drill, policy: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        reprieve.wrap(SDKS["openai"].make(drill), policy)


def test_what_belongs_to_one_call_is_no_option_of_a_client(drill: Drill) -> None:
    made = SDKS["openai"].make(drill)
    with pytest.raises(ConfigError, match="idempotency_key"):
        reprieve.wrap(made, "interactive", idempotency_key="one for all")
    with pytest.raises(ConfigError, match="trace_id"):
        reprieve.wrap(made, Policy().bind(trace_id="0" * 32))
    with pytest.raises(ConfigError, match="no such option"):
        reprieve.wrap(made, "interactive", scenes="x")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="idempotency: 3"):
        reprieve.wrap(made, "interactive", idempotency=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("prices", "match"),
    [
        ([], "prices: .* a mapping"),
        ({"m": 3}, "prices.m: 3"),
        ({"m": {"input": 1}}, "prices.m.output: nothing"),
        ({"m": {"input": -1, "output": 1}}, "prices.m.input: -1"),
        ({"m": {"input": True, "output": 1}}, "prices.m.input: True"),
        ({"m": {"input": float("nan"), "output": 1}}, "prices.m.input: nan"),
        ({"m": {"input": 1, "output": 1, "outputs": 1}}, "prices.m.outputs"),
        ({"m": {"input": 1, "output": 1, "currency": ""}}, "prices.m.currency"),
    ],
)
def test_prices_are_checked(drill: Drill, prices: Any, match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        reprieve.wrap(SDKS["openai"].make(drill), "interactive", prices=prices)


@pytest.mark.parametrize("name", ["openai", "anthropic", "genai", "bedrock"])
@pytest.mark.parametrize("found", ["0.49.1", "99.0.0"])
def test_a_version_out_of_range_is_refused(
    drill: Drill, monkeypatch: pytest.MonkeyPatch, name: str, found: str
) -> None:
    made = SDKS[name].make(drill)
    monkeypatch.setattr("importlib.metadata.version", lambda _package: found)
    with pytest.raises(ConfigError, match=rf"{found}.* from .* up and below"):
        reprieve.wrap(made, "interactive")


def test_a_copy_that_its_class_cannot_make_is_an_error(drill: Drill) -> None:
    class Odd(openai.OpenAI):
        def __init__(self, place: str) -> None:
            super().__init__(base_url=place, api_key="none")

    with pytest.raises(ConfigError, match=r"Odd is not allowed.*copy\(max_retries=0\)"):
        reprieve.wrap(Odd(drill.url), "interactive")


def test_retry_options_of_a_gemini_call_are_refused(drill: Drill) -> None:
    from google.genai import types

    client = reprieve.wrap(SDKS["genai"].make(drill), QUICK)
    options = types.HttpOptions(retry_options=types.HttpRetryOptions(attempts=4))
    with pytest.raises(ConfigError, match=r"retry_options\.attempts: 4"):
        sdk_clients.ask_genai(client, "hello", http_options=options)
    assert drill.visits() == []


def test_no_sdk_is_imported_before_a_client_is_wrapped() -> None:
    import subprocess
    import sys

    code = (
        "import reprieve, sys; found = {name.partition('.')[0] for name in sys.modules};"
        "print(found & {'openai', 'anthropic', 'google', 'botocore', 'httpx', 'httpx2', 'requests', 'aiohttp'})"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"


def test_anthropic_keeps_its_own_check_of_long_answers(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["anthropic"].make(drill), QUICK)
    with pytest.raises(ValueError, match="Streaming is required"):
        client.messages.create(model=MODEL, max_tokens=1_000_000, messages=messages("hello"))
    assert isinstance(client, anthropic.Anthropic)
