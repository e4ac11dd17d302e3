"""Retries that nobody has asked for: a wrapped client that tries again by itself is reported."""

from __future__ import annotations

import json
import warnings
from typing import Any

import httpx2
import openai
import pytest
from at_gateway import ANSWER, Drill
from sdk_clients import QUICK, SDKS, completion

import reprieve
from reprieve import trace_of


class Stubborn(httpx2.BaseTransport):
    """A transport that tries again by itself."""

    def __init__(self, times: int) -> None:
        self.inner, self.times = httpx2.HTTPTransport(), times

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self.inner.handle_request(request)
        for _ in range(self.times):
            if response.status_code < 500:
                break
            response.read()
            response = self.inner.handle_request(request)
        return response


def test_hidden_retries_are_reported(drill: Drill) -> None:
    lines: list[str] = []
    http = httpx2.Client(transport=Stubborn(2))
    client = reprieve.wrap(SDKS["openai"].make(drill, http_client=http), QUICK, sink=lines.append)
    with pytest.warns(RuntimeWarning, match="made 2 retries of its own within one attempt"):
        assert completion(client, "#[500x4]").choices[0].message.content == ANSWER
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        completion(client, "#[503x2]")  # said once, and recorded each time
    hidden = [record for line in lines if (record := json.loads(line)).get("record") == "hidden_retries"]
    assert [(record["attempt"], record["retries"]) for record in hidden] == [(1, 2), (2, 1), (1, 2)]
    assert len(drill.visits()) == 8


def test_a_subclass_that_retries_by_itself_is_reported(drill: Drill) -> None:
    class Retrying(openai.OpenAI):
        def request(self, *args: Any, **kwargs: Any) -> Any:
            try:
                return super().request(*args, **kwargs)
            except openai.InternalServerError:
                return super().request(*args, **kwargs)

    client = reprieve.wrap(Retrying(base_url=drill.url, api_key="none", default_headers=drill.headers), QUICK)
    with pytest.warns(RuntimeWarning, match="made 1 retries"), pytest.raises(openai.InternalServerError) as caught:
        completion(client, "#[500]")
    trace = trace_of(caught.value)
    assert trace is not None
    records = [json.loads(line) for line in trace.lines]
    # What the driver has written comes before what the core has, as in JavaScript.
    assert [record.get("retries") for record in records[:3]] == [1, 1, 1]
    assert not any(record.get("record") == "hidden_retries" for record in records[3:])
    assert len(drill.visits()) == 6


class AsyncStubborn(httpx2.AsyncBaseTransport):
    """The same, awaited."""

    def __init__(self, times: int) -> None:
        self.inner, self.times = httpx2.AsyncHTTPTransport(), times

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self.inner.handle_async_request(request)
        for _ in range(self.times):
            if response.status_code < 500:
                break
            await response.aread()
            response = await self.inner.handle_async_request(request)
        return response


@pytest.mark.parametrize("name", ["openai async", "anthropic", "anthropic async", "genai", "genai async"])
def test_hidden_retries_of_every_client_are_reported(drill: Drill, name: str) -> None:
    awaited = SDKS[name].awaited
    http: Any = httpx2.AsyncClient(transport=AsyncStubborn(1)) if awaited else httpx2.Client(transport=Stubborn(1))
    field = "http_client" if "genai" not in name else "httpx_async_client" if awaited else "httpx_client"
    client = reprieve.wrap(SDKS[name].make(drill, **{field: http}), QUICK)
    with pytest.warns(RuntimeWarning, match="made 1 retries of its own"):
        assert SDKS[name].asked(client, "#[500x3]") == ANSWER
    assert len(drill.visits()) == 4


def test_redirects_are_no_retries(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert completion(client, "#[redirect,ok]").choices[0].message.content == ANSWER
    assert drill.played() == ["redirect", "ok"]


def test_a_client_that_does_not_retry_is_not_accused(drill: Drill) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for sdk in SDKS.values():
            assert sdk.asked(reprieve.wrap(sdk.make(drill), QUICK), "#[500,ok]") == ANSWER


def test_a_warning_that_is_an_error_does_not_fail_the_call(drill: Drill) -> None:
    http = httpx2.Client(transport=Stubborn(2))
    client = reprieve.wrap(SDKS["openai"].make(drill, http_client=http), QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert completion(client, "#[500x2]").choices[0].message.content == ANSWER
