"""What derives from a wrapped client, what its user's hooks see, and what it refuses."""

from __future__ import annotations

import asyncio
import io
import json
import re
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest
import sdk_clients
from at_gateway import Drill, gateway
from sdk_clients import MODEL, SDKS, messages, run

import reprieve
from reprieve import ConfigError, Policy, trace_of

TEXT = "The gateway answers: all is well, 世界é"
QUICK: dict[str, Any] = {"max_attempts": 3, "backoff": {"base": 0.01, "max": 0.02}, "total_timeout": 300}


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with gateway() as origin:
        yield origin


@pytest.fixture
def drill(origin: str) -> Drill:
    return Drill(origin)


@pytest.fixture
def client(drill: Drill) -> openai.OpenAI:
    made: openai.OpenAI = SDKS["openai"].make(drill)
    return reprieve.wrap(made, QUICK)


def ask(client: Any, text: str = "#[500,ok]", **options: Any) -> Any:
    return client.chat.completions.create(model=MODEL, messages=messages(text), **options)


def finished(answer: Any) -> Any:
    return run(answer) if asyncio.iscoroutine(answer) else answer


STAINLESS = ["openai", "azure", "anthropic"]


# --- derived clients -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in SDKS if name.split()[0] in STAINLESS])
@pytest.mark.parametrize("way", ["copy", "with_options"])
def test_derived_clients_stay_wrapped(drill: Drill, name: str, way: str) -> None:
    sdk = SDKS[name]
    derived = getattr(reprieve.wrap(sdk.make(drill), QUICK), way)(timeout=7)
    derived = derived.with_options(default_headers={"x-more": "1"})
    assert (derived.timeout, derived.max_retries) == (7, 0)
    assert sdk.asked(derived, "#[500,500,ok]") == TEXT
    assert drill.played() == ["500", "500", "ok"]


@pytest.mark.parametrize("name", [name for name in SDKS if name.split()[0] in STAINLESS])
def test_retries_beside_the_policy_are_refused(drill: Drill, name: str) -> None:
    client = reprieve.wrap(SDKS[name].make(drill), QUICK)
    for way in (client.copy, client.with_options):
        with pytest.raises(ConfigError, match=r"max_retries: 5 is not allowed.*max_attempts in the policy"):
            way(max_retries=5)
    with pytest.raises(ConfigError, match="max_retries: 1 is not allowed"):
        client.max_retries = 1
    with pytest.raises(ConfigError, match="max_retries: 4 is not allowed"):
        finished(client.post("/chat/completions", cast_to=object, body={}, options={"max_retries": 4}))
    assert client.max_retries == 0
    assert drill.visits() == []


def test_no_retries_means_one_attempt(client: openai.OpenAI, drill: Drill) -> None:
    """The SDK's own helpers ask for it where a request must not be repeated."""
    with pytest.raises(openai.InternalServerError) as caught:
        ask(client.with_options(max_retries=0), "#[500]")
    trace = trace_of(caught.value)
    assert trace is not None
    assert len(trace.receipts) == len(drill.visits()) == 1


def test_raw_responses_run_under_the_policy_and_tell_their_usage(drill: Drill) -> None:
    lines: list[str] = []
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK, sink=lines.append)
    raw = ask(client.with_raw_response)
    assert raw.parse().choices[0].message.content == TEXT
    with client.chat.completions.with_streaming_response.create(
        model=MODEL, messages=messages("#[503,ok]")
    ) as streamed:
        assert streamed.parse().choices[0].message.content == TEXT
    assert sorted(drill.played()) == ["500", "503", "ok", "ok"]
    ends = [record for line in lines if (record := json.loads(line)).get("record")]
    assert [end["output_tokens"] for end in ends] == [9, None], "what has not been read tells nothing"


def test_every_endpoint_is_covered(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK)
    answer = client.responses.create(model=MODEL, input="#[500,ok]")
    assert answer.output_text == TEXT
    parsed = client.chat.completions.parse(model=MODEL, messages=messages("#[502,ok]"))
    assert parsed.choices[0].message.content == TEXT
    plain = client.post("/chat/completions", cast_to=object, body={"model": MODEL, "messages": messages("#[504,ok]")})
    assert plain["usage"]["completion_tokens"] == 9  # type: ignore[index]
    other = reprieve.wrap(SDKS["anthropic"].make(drill), QUICK)
    answered = other.beta.messages.create(model=MODEL, max_tokens=9, messages=messages("#[529,ok]"))
    assert answered.content[0].text == TEXT
    assert sorted(drill.played()) == ["500", "502", "504", "529", "ok", "ok", "ok", "ok"]


def test_with_blocks_close_what_they_share(drill: Drill) -> None:
    made = SDKS["openai"].make(drill)
    with reprieve.wrap(made, QUICK) as client:
        assert ask(client).choices[0].message.content == TEXT
    assert made.is_closed()


# --- what users have hung into the client ----------------------------------------------------------------------------


def test_the_records_say_what_wrapping_changed(drill: Drill) -> None:
    changes = {
        "openai": r"openai [\d.]+: max_retries 2 -> 0, timeouts -> at most the attempt's, Idempotency-Key -> .*",
        "anthropic async": r"anthropic [\d.]+: max_retries 2 -> 0, .*",
        "genai": r"google-genai [\d.]+: no retries -> 1 attempt, .*",
        "bedrock": r"botocore [\d.]+: retries of mode standard -> none, .*",
    }
    for name, expected in changes.items():
        lines: list[str] = []
        client = reprieve.wrap(SDKS[name].make(drill), QUICK, idempotency=True, sink=lines.append)
        SDKS[name].asked(client, "hello")
        assert re.fullmatch(expected, json.loads(lines[-1])["client"])


def test_hooks_fire_once_for_each_attempt(drill: Drill) -> None:
    asked: list[str] = []
    answered: list[int] = []
    hooks: Any = {
        "request": [lambda request: asked.append(request.headers["x-stainless-retry-count"])],
        "response": [lambda response: answered.append(response.status_code)],
    }
    http = httpx2.Client(event_hooks=hooks)
    client = reprieve.wrap(SDKS["openai"].make(drill, http_client=http), QUICK)
    assert ask(client, "#[500,429,ok]").choices[0].message.content == TEXT
    assert asked == ["0", "0", "0"], "nothing in the client counts as a retry of its own"
    assert answered == [500, 429, 200]
    async_hooks: list[int] = []

    async def hook(response: Any) -> None:
        async_hooks.append(response.status_code)

    async_http = httpx2.AsyncClient(event_hooks={"response": [hook]})
    awaited = reprieve.wrap(SDKS["anthropic async"].make(drill, http_client=async_http), QUICK)
    assert SDKS["anthropic async"].asked(awaited, "#[500,ok]") == TEXT
    assert async_hooks == [500, 200]


def test_middleware_of_the_sdk_runs_once_for_each_attempt(drill: Drill) -> None:
    seen: list[int] = []

    def middleware(request: Any, call_next: Any) -> Any:
        seen.append(request.retries_taken)
        return call_next(request)

    client = reprieve.wrap(SDKS["anthropic"].make(drill, middleware=[middleware]), QUICK)
    assert SDKS["anthropic"].asked(client, "#[500,ok]") == TEXT
    assert seen == [0, 0]


def test_a_clients_own_trace_listener_is_kept(drill: Drill) -> None:
    heard: list[str] = []

    def listen(request: Any) -> None:
        assert callable(request.extensions["trace"]), "ours is there, and calls on"

    http = httpx2.Client(event_hooks={"request": [listen]})
    client = reprieve.wrap(SDKS["openai"].make(drill, http_client=http), QUICK)
    ask(client)
    del heard


def test_timeouts_only_get_shorter(drill: Drill) -> None:
    seen: list[dict[str, float]] = []
    http = httpx2.Client(event_hooks={"request": [lambda request: seen.append(request.extensions["timeout"])]})
    made = SDKS["openai"].make(drill, http_client=http, timeout=httpx2.Timeout(900.0, connect=150))
    client = reprieve.wrap(made, {**QUICK, "connect_timeout": 200, "attempt_timeout": 250})
    ask(client, "hello")
    assert seen[-1] == {"connect": 150.0, "read": 250.0, "write": 250.0, "pool": 250.0}
    ask(client, "hello", timeout=240)
    assert seen[-1] == {"connect": 200.0, "read": 240.0, "write": 240.0, "pool": 240.0}
    ask(reprieve.wrap(made, {"total_timeout": "1h"}), "hello")
    assert seen[-1] == {"connect": 150.0, "read": 900.0, "write": 900.0, "pool": 900.0}
    # What is left of the call bounds the last attempt.
    ask(reprieve.wrap(made, {**QUICK, "total_timeout": 400}), "hello")
    assert 300 < seen[-1]["read"] <= 400


def test_an_idempotency_key_of_the_users_own_is_kept(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK, idempotency=True)
    ask(client, extra_headers={"idempotency-key": "mine"})
    assert [visit["idempotency-key"] for visit in drill.visits()] == ["mine", "mine"]


# --- targets ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["openai", "openai async", "anthropic", "bedrock"])
def test_a_target_has_a_client_of_its_own(drill: Drill, origin: str, name: str) -> None:
    sdk, nowhere = SDKS[name], Drill(f"{origin}/nowhere")
    lines: list[str] = []
    policy = Policy.preset("llm").replace(backoff={"base": 0.01})
    clients = {"backup": sdk.make(drill)}
    client = reprieve.wrap(sdk.make(nowhere), policy, clients=clients, sink=lines.append)
    assert sdk.asked(client, "#[500,ok]") == TEXT
    targets = [record["target"] for line in lines if "attempt" in (record := json.loads(line))]
    assert targets == ["primary", "backup", "backup"]
    assert drill.played() == ["500", "ok"]


def test_clients_for_targets_are_checked(drill: Drill) -> None:
    policy = Policy.preset("llm")
    make = SDKS["openai"].make
    with pytest.raises(ConfigError, match=r"clients\.spare"):
        reprieve.wrap(make(drill), policy, clients={"spare": make(drill)})
    with pytest.raises(ConfigError, match=r"^clients: 3 is not allowed; it takes a mapping from a target's id"):
        reprieve.wrap(make(drill), policy, clients=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"clients\.backup: a Anthropic is not allowed; it takes a OpenAI"):
        reprieve.wrap(make(drill), policy, clients={"backup": SDKS["anthropic"].make(drill)})


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
    assert sdk.asked(client, "#[500x3]") == TEXT
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
    assert sdk.asked(client, "#[context]") == TEXT
    assert drill.played() == ["context", "ok"]


def test_an_answer_is_checked(drill: Drill) -> None:
    seen: list[str] = []

    def check(answer: Any) -> str | None:
        seen.append(answer.choices[0].message.content)
        return "invalid_output" if len(seen) < 2 else None

    client = reprieve.wrap(SDKS["openai"].make(drill), {**QUICK, "retry_on": ["invalid_output"]}, check=check)
    assert ask(client, "hello").choices[0].message.content == TEXT
    assert seen == [TEXT, TEXT]
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


# --- retries that nobody has asked for -------------------------------------------------------------------------------


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
        assert ask(client, "#[500x4]").choices[0].message.content == TEXT
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(client, "#[503x2]")  # said once, and recorded each time
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
        ask(client, "#[500]")
    trace = trace_of(caught.value)
    assert trace is not None
    records = [json.loads(line) for line in trace.lines]
    assert [record["retries"] for record in records if record.get("record") == "hidden_retries"] == [1, 1, 1]
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
        assert SDKS[name].asked(client, "#[500x3]") == TEXT
    assert len(drill.visits()) == 4


def test_redirects_are_no_retries(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask(client, "#[redirect,ok]").choices[0].message.content == TEXT
    assert drill.played() == ["redirect", "ok"]


def test_a_client_that_does_not_retry_is_not_accused(drill: Drill) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for sdk in SDKS.values():
            assert sdk.asked(reprieve.wrap(sdk.make(drill), QUICK), "#[500,ok]") == TEXT


def test_a_warning_that_is_an_error_does_not_fail_the_call(drill: Drill) -> None:
    http = httpx2.Client(transport=Stubborn(2))
    client = reprieve.wrap(SDKS["openai"].make(drill, http_client=http), QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask(client, "#[500x2]").choices[0].message.content == TEXT


# --- bad input -------------------------------------------------------------------------------------------------------


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
