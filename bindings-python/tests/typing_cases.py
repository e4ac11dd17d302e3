"""What editors and type checkers are told. Checked by mypy and pyright (`make check`), never run.

A line that ends in an ignore must be an error: both checkers report an ignore that nothing needs.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import aiohttp
import fastapi
import httpx
import httpx2
import langgraph.types
import requests
from typing_extensions import assert_type

from reprieve import (
    Action,
    AsyncStream,
    Attempt,
    Bound,
    Breaker,
    Call,
    Failure,
    Guards,
    Handle,
    Policy,
    Result,
    Run,
    Stream,
    Trace,
    classify,
    current_attempt,
    testing,
    trace_of,
    wrap,
)
from reprieve.integrations import fastapi as fastapi_integration
from reprieve.integrations.aiohttp import RetryMiddleware
from reprieve.integrations.httpx import AsyncRetryTransport, RetryTransport
from reprieve.integrations.httpx2 import RetryTransport as RetryTransport2
from reprieve.integrations.langchain import Resilient, ResilientChatModel, resilient
from reprieve.integrations.langgraph import retry_policy
from reprieve.integrations.requests import RetryAdapter
from reprieve.types import Kind, PolicyFields, StopReason

if TYPE_CHECKING:
    from io import TextIOWrapper

    import anthropic
    import openai
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable
    from openai.types.chat import ChatCompletion

policy = Policy()


# --- decorators keep what they decorate ------------------------------------------------------------------------------


@policy
def plain(question: str, *, tries: int = 1) -> bytes:
    return question.encode() * tries


@Policy.preset("interactive").bind(scene="chat")
async def coroutine(question: str, *, tries: int = 1) -> bytes:
    return question.encode() * tries


@Breaker(consecutive_failures=2, open_for="30s")
def broken(number: int) -> int:
    return number


class Client:
    @policy
    def ask(self, question: str) -> int:
        return len(question)

    @policy
    async def ask_later(self, question: str) -> int:
        return len(question)


assert_type(plain("?", tries=2), bytes)
plain(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
plain("?", retries=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
assert_type(broken(1), int)
assert_type(Client().ask("?"), int)
Client().ask(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
decorated: Callable[[str], int] = Client().ask
on_demand: Callable[[int], int] = policy(lambda number: number + 1)


async def awaits() -> None:
    assert_type(await coroutine("?"), bytes)
    assert_type(await Client().ask_later("?"), int)
    await coroutine(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# --- calls -----------------------------------------------------------------------------------------------------------


def double(number: int) -> int:
    return number * 2


async def double_later(number: int) -> int:
    return number * 2


def untyped(*args: Any) -> Any: ...


assert_type(policy.call(double, 1), int)
assert_type(policy.call(double, number=1), int)
policy.call(double, "1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
policy.call(double)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
assert_type(policy.execute(double, 1), Result[int])
assert_type(policy.bind(seed=1).execute(double, 1), Result[int])
assert_type(policy.start(double, 1), Handle[int])
assert_type(policy.start(double, 1).result(), int)
assert_type(policy.start(double_later, 1), Handle[int])


async def calls() -> None:
    later: Coroutine[Any, Any, Result[int]] = policy.execute(double_later, 1)
    assert_type(await later, Result[int])
    assert_type(policy.call(untyped), Any)
    assert_type(await policy.call(double_later, 1), int)
    result = await policy.execute(double_later, 1)
    assert_type(result, Result[int])
    assert_type(result.value, int | None)
    assert_type(result.value_or(0), int)
    assert_type(result.value_or(None), int | None)
    assert_type(result.error, Exception | None)
    assert_type(await policy.start(double_later, 1), int)
    async for attempt in policy.attempts():
        with attempt as made:
            assert_type(made, Attempt)


def loops() -> None:
    for attempt in policy.attempts():
        assert_type(attempt.number, int)
        with attempt:
            double(1)


def refresh(request: dict[str, Any], failure: Failure) -> None:
    assert_type(failure.error, BaseException | None)
    request["token"] = "new"


async def refresh_later(request: dict[str, Any], failure: Failure) -> dict[str, Any]:
    return {**request, "token": failure.kind}


# --- options ---------------------------------------------------------------------------------------------------------


def options(log: TextIOWrapper) -> Bound:
    bound = policy.bind(
        scene="chat",
        prompt_version=None,
        seed=7,
        classify=lambda error: "overloaded" if isinstance(error, KeyError) else None,
        retry_if=lambda error, failure: failure.retriable and not isinstance(error, KeyError),
        backoff=lambda failure, n: failure.retry_after or timedelta(seconds=n),
        targets={"backup": double},
        guards=Guards(),
        run=Run(attempts=10, deadline=timedelta(minutes=5)),
        sink=log,
        on_event=print,
        cancel=threading.Event(),
        on_give_up="wrapped",
        unmask=["ids"],
        check=bool,
        prepare=lambda request, target: {**request, "model": target},
        repair={"auth_failed": refresh, "schema_invalid": lambda request, failure: {**request, "said": failure.value}},
    )
    policy.bind(repair={"auth_failed": refresh_later}, prepare=None)
    policy.bind(repair={"auth_faild": refresh})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    policy.bind(check=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    policy.bind(sink=print, on_give_up="original")
    policy.bind(scen="chat")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    policy.bind(seed="7")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    policy.bind(on_give_up="raise")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return bound


def policies(name: str, fields: PolicyFields, anything: dict[str, Any]) -> list[Policy]:
    Policy(max_attempt=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Policy(max_attempts="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Policy(retry_on=["timeuot"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
    Policy(backoff={"bas": 1})  # type: ignore[typeddict-unknown-key]  # pyright: ignore[reportArgumentType]
    Policy(targets=[{"account": "acme"}])  # type: ignore[typeddict-item]  # pyright: ignore[reportArgumentType]
    return [
        Policy(
            max_attempts=5,
            total_timeout=timedelta(minutes=1),
            attempt_timeout="20s",
            connect_timeout=3,
            max_total_wait=None,
            backoff={"kind": "exponential", "base": 0.3, "factor": 2, "max": "4s"},
            jitter={"kind": "full"},
            retry_after={"max": 60, "spread": 0.1},
            retry_on=["timeout", "rate_limit"],
            kinds={"rate_limit": {"backoff": {"base": "1s"}, "max_attempts": 2}},
            rules=[{"when": {"status": 418, "message": "brewing"}, "kind": "model_not_ready"}],
            side_effects="unsafe",
            targets=[{"id": "primary", "account": "acme"}, {"id": "backup", "attempt_timeout": "20s"}],
            breaker={"consecutive_failures": 5},
            retry_budget={"capacity": 500},
            cooldown={},
            shed={"queue_depth": 1000, "below_priority": 5},
            stream={"mode": "buffered"},
        ),
        Policy(**fields),
        Policy(**anything),
        Policy.preset("llm").replace(max_attempts=2),
        Policy.preset(name),
        Policy.from_json(name),
    ]


# --- what comes out --------------------------------------------------------------------------------------------------


def records(error: Exception) -> None:
    failure = classify(error)
    kind: Kind = failure.kind
    assert_type(classify(status=429, headers={"retry-after": "1"}).retry_after, float | None)
    classify(statuss=429)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    assert_type(trace_of(error), Trace | None)
    attempt = current_attempt()
    if attempt is not None:
        assert_type(attempt.timeout, float)
    reason: StopReason | None = policy.execute(double, 1).stop_reason
    print(kind, reason)


def machine() -> None:
    call = Call(policy, seed=7)
    action = call.begin(0)
    assert_type(action, Action)
    if action.kind == "attempt":
        call.on_outcome(1, 1, {"failure": {"kind": "timeout"}})
    with testing.virtual(attempts=2) as clock:
        assert_type(clock.sleeps, list[float])


# --- streams: the items' type is the function's -----------------------------------------------------------------------


@policy
def words(text: str, *, most: int = 9) -> Generator[str, None, None]:
    yield text[:most]


@policy
def iterated(text: str) -> Iterator[str]:
    yield text


@policy
async def words_later(text: str, *, most: int = 9) -> AsyncGenerator[str, None]:
    yield text[:most]


class Chat:
    @policy
    def words(self, text: str) -> Generator[bytes, None, None]:
        yield text.encode()

    @policy
    async def words_later(self, text: str) -> AsyncGenerator[bytes, None]:
        yield text.encode()


def plainly(text: str) -> list[int]:
    return [len(text)]


async def plainly_later(text: str) -> AsyncIterator[int]:
    yield len(text)


async def opened_later(text: str) -> AsyncIterator[int]:
    return plainly_later(text)


def managed(text: str) -> AbstractContextManager[Iterator[int]]:
    raise NotImplementedError(text)


def managed_later(text: str) -> AbstractAsyncContextManager[AsyncIterator[int]]:
    raise NotImplementedError(text)


assert_type(words("?", most=2), Generator[str, None, None])
words(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
assert_type(iterated("?"), Iterator[str])
assert_type(words_later("?", most=2), AsyncGenerator[str, None])
assert_type(Chat().words("?"), Generator[bytes, None, None])
assert_type(Chat().words_later("?"), AsyncGenerator[bytes, None])
assert_type(policy.stream(words, "?"), Stream[str])
assert_type(policy.stream(words_later, "?"), AsyncStream[str])
assert_type(policy.stream(plainly, "?"), Stream[int])
assert_type(policy.stream(managed, "?"), Stream[int])
assert_type(policy.stream(plainly_later, "?"), AsyncStream[int])
assert_type(policy.stream(opened_later, "?"), AsyncStream[int])
assert_type(policy.stream(managed_later, "?"), AsyncStream[int])
policy.stream(plainly, 1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


async def consumes() -> None:
    with policy.stream(plainly, "?") as items:
        assert_type(list(items), list[int])
        assert_type(items.trace, Trace | None)
    async with policy.stream(plainly_later, "?") as later:
        assert_type([item async for item in later], list[int])


# --- layers ----------------------------------------------------------------------------------------------------------

assert_type(RetryTransport("interactive").handle_request(httpx.Request("GET", "http://x")), httpx.Response)
httpx.Client(transport=RetryTransport(policy.bind(scene="x"), httpx.HTTPTransport(), methods=["POST"], max_body=1))
httpx.AsyncClient(transport=AsyncRetryTransport(policy, idempotency_header="Idempotency-Key"))
RetryTransport("no such preset")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
RetryTransport(policy, httpx.AsyncHTTPTransport())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
httpx2.Client(transport=RetryTransport2(policy))
requests.Session().mount("https://", RetryAdapter(policy, methods=("POST",)))


async def layered() -> None:
    async with aiohttp.ClientSession(middlewares=(RetryMiddleware(policy),)) as session:
        assert_type(trace_of(await session.get("http://x")), Trace | None)


fastapi_integration.install(fastapi.FastAPI(), {"shed": 429})
fastapi_integration.install(fastapi.FastAPI(), {"she": 429})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
assert_type(retry_policy(policy), langgraph.types.RetryPolicy)


# --- clients keep their types ----------------------------------------------------------------------------------------


def clients(client: openai.OpenAI, other: anthropic.AsyncAnthropic) -> None:
    wrapped = wrap(client, "interactive", prices={"gpt-5": {"input": 1.25, "output": 10.0, "currency": "EUR"}})
    assert_type(wrapped, openai.OpenAI)
    answer = wrapped.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "?"}])
    assert_type(answer, ChatCompletion)
    assert_type(wrap(other, Policy(), idempotency=True, scene="chat"), anthropic.AsyncAnthropic)
    wrap(other, {"max_attempts": 2}, clients={"backup": other})
    wrap(client, {"max_atempts": 2})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    wrap(client, policy, prices={"gpt-5": {"input": 1.25}})  # type: ignore[typeddict-item]  # pyright: ignore[reportArgumentType]
    wrap(client, policy, scenes="chat")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


# --- frameworks ------------------------------------------------------------------------------------------------------


def frameworks(model: BaseChatModel, chain: Runnable[str, str]) -> None:
    assert_type(resilient(model, "llm", fallbacks=[model]), ResilientChatModel)
    assert_type(resilient(chain, {"max_attempts": 2}), Resilient)
    resilient(model, {"max_atempts": 2})  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
    resilient(model, 7)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
