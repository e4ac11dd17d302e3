"""Real clients, called alike: each makes one request, and the evidence of its failure is looked at."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
import anthropic
import botocore.config
import botocore.session
import httpx
import httpx2
import openai
import pytest
import requests
import urllib3
from failing import failure_of
from google import genai

from reprieve._evidence import evidence_of

Evidence = dict[str, Any]
Client = Callable[..., object]
PATIENT = 60.0


def seen(call: Callable[[], object]) -> Evidence:
    """The evidence of the call's failure."""
    evidence = evidence_of(failure_of(call))
    json.dumps(evidence, default=lambda raw: raw.decode())  # plain values only
    return evidence


def call_openai(url: str, timeout: float = PATIENT) -> object:
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0, timeout=timeout) as client:
        return client.chat.completions.create(model="m", messages=[{"role": "user", "content": "429"}])


def call_anthropic(url: str, timeout: float = PATIENT) -> object:
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0, timeout=timeout) as client:
        return client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "429"}])


def call_openai_async(url: str, timeout: float = PATIENT) -> object:
    limits = httpx2.Timeout(timeout, connect=PATIENT)

    async def main() -> object:
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0, timeout=limits) as client:
            return await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])

    return asyncio.run(main())


def call_httpx(url: str, timeout: float = PATIENT) -> object:
    return httpx.get(url, timeout=timeout).raise_for_status()


def call_httpx2(url: str, timeout: float = PATIENT) -> object:
    return httpx2.get(url, timeout=timeout).raise_for_status()


def call_requests(url: str, timeout: float = PATIENT) -> object:
    requests.get(url, timeout=timeout).raise_for_status()
    return None


def call_urllib3(url: str, timeout: float = PATIENT) -> object:
    with urllib3.PoolManager(retries=False, timeout=timeout) as pool:
        return pool.request("GET", url)


def call_urllib(url: str, timeout: float = PATIENT) -> object:
    return urllib.request.urlopen(url, timeout=timeout).read()


def call_aiohttp(url: str, timeout: float = PATIENT) -> object:
    async def main() -> object:
        limits = aiohttp.ClientTimeout(total=timeout)
        async with aiohttp.ClientSession(timeout=limits) as session, session.get(url) as response:
            response.raise_for_status()
            return await response.read()

    return asyncio.run(main())


def call_botocore(url: str, timeout: float = PATIENT) -> object:
    config = botocore.config.Config(
        retries={"total_max_attempts": 1}, read_timeout=timeout, connect_timeout=timeout, parameter_validation=False
    )
    client = botocore.session.get_session().create_client(
        "sqs", "us-east-1", endpoint_url=url, aws_access_key_id="k", aws_secret_access_key="s", config=config
    )
    return client.list_queues()


def call_genai(url: str, timeout: float = PATIENT) -> object:
    options = genai.types.HttpOptions(base_url=url, timeout=int(timeout * 1000))
    with genai.Client(api_key="k", http_options=options) as client:
        return client.models.generate_content(model="m", contents="x")


CLIENTS: dict[str, Client] = {
    name.removeprefix("call_"): call for name, call in sorted(globals().items()) if name.startswith("call_")
}
every_client = pytest.mark.parametrize("call", CLIENTS.values(), ids=CLIENTS.keys())


def only(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("call", [CLIENTS[name] for name in names], ids=names)
