"""The clients of the drill: `openai` and `anthropic`, each plain and async, their own retries off.

Each is driven as its users would: a plain function hands the attempt's time-outs on to the client, a coroutine is cut
by the driver. `openai` functions are decorated and raise; `anthropic` functions are executed and answer a `Result`.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import anthropic
import openai

from reprieve import Bound, Result, current_attempt

#: What a request is given that the driver can cut, in seconds: more than any player waits for.
PATIENCE = 600.0

#: Makes a call: `Bound.call` or `Bound.execute`.
Make = Callable[[Bound, Callable[[], Any]], Any]

THREAD = frozenset({"connect timeout"})
TASK = frozenset({"connect timeout", "interrupt"})


@dataclass(frozen=True)
class Question:
    """What is asked, and where."""

    url: str
    drill: str
    model: str
    prompt: str

    def request(self, *, cut: bool) -> dict[str, Any]:
        """The arguments that all clients take alike; `cut` says that the driver ends the attempt in time."""
        attempt = current_attempt()
        assert attempt is not None
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": f"Say hello. {self.prompt}"}],
            "timeout": openai.Timeout(PATIENCE if cut else attempt.timeout, connect=attempt.connect_timeout),
            "extra_headers": {"x-drill-id": self.drill, "idempotency-key": attempt.idempotency_key},
        }


@dataclass(frozen=True)
class End:
    """How a call ended for its caller."""

    value: Any
    error: BaseException | None
    result: Result[Any] | None
    began: float
    ended: float

    @staticmethod
    def of(answer: Any, began: float) -> End:
        """From what came back: a value, an error or a `Result`."""
        ended = time.perf_counter()
        if isinstance(answer, Result):
            return End(answer.value, answer.error, answer, began, ended)
        if isinstance(answer, BaseException):
            return End(None, answer, None, began, ended)
        return End(answer, None, None, began, ended)


@dataclass(frozen=True)
class Call:
    """A call under way: its end to come, and what cancels it."""

    end: Future[End]
    cancel: Callable[[], object]


@dataclass(frozen=True)
class Client:
    """One of the clients, and the way it is driven."""

    name: str
    ask: Callable[[Question], Any]
    #: The text of an answer.
    text: Callable[[Any], str | None]
    #: Starts a call of a function without arguments.
    start: Callable[[Bound, Callable[[], Any]], Call]
    #: What is possible here that is not everywhere.
    can: frozenset[str]


class Clients:
    """All clients, with the threads and the loop that they run on."""

    def __init__(self, retries: int = 0) -> None:
        os.environ["NO_PROXY"] = "127.0.0.1"
        self._threads = ThreadPoolExecutor(64, "drill")
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="drill-loop", daemon=True).start()
        settings: dict[str, Any] = {"api_key": "drill", "base_url": "http://127.0.0.1:1", "max_retries": retries}
        self._openai, self._openai_async = openai.OpenAI(**settings), openai.AsyncOpenAI(**settings)
        self._anthropic, self._anthropic_async = anthropic.Anthropic(**settings), anthropic.AsyncAnthropic(**settings)
        self.all = [
            Client("openai", self._ask_openai, _openai_text, partial(self._run, Bound.call), THREAD),
            Client("openai async", self._ask_openai_async, _openai_text, partial(self._spawn, Bound.call), TASK),
            Client("anthropic", self._ask_anthropic, _anthropic_text, partial(self._run, Bound.execute), THREAD),
            Client(
                "anthropic async", self._ask_anthropic_async, _anthropic_text, partial(self._spawn, Bound.execute), TASK
            ),
        ]

    def close(self) -> None:
        async def close_async() -> None:
            await self._openai_async.close()
            await self._anthropic_async.close()

        self._openai.close()
        self._anthropic.close()
        asyncio.run_coroutine_threadsafe(close_async(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._threads.shutdown(wait=False)

    def _ask_openai(self, question: Question) -> Any:
        client = self._openai.with_options(base_url=f"{question.url}/v1")
        return client.chat.completions.create(**question.request(cut=False))

    async def _ask_openai_async(self, question: Question) -> Any:
        client = self._openai_async.with_options(base_url=f"{question.url}/v1")
        return await client.chat.completions.create(**question.request(cut=True))

    def _ask_anthropic(self, question: Question) -> Any:
        client = self._anthropic.with_options(base_url=question.url)
        return client.messages.create(max_tokens=50, **question.request(cut=False))

    async def _ask_anthropic_async(self, question: Question) -> Any:
        client = self._anthropic_async.with_options(base_url=question.url)
        return await client.messages.create(max_tokens=50, **question.request(cut=True))

    def _run(self, make: Make, bound: Bound, function: Callable[[], Any]) -> Call:
        """On a thread; an event cancels it."""
        event = threading.Event()
        bound = bound.bind(cancel=event)

        def run() -> End:
            began = time.perf_counter()
            try:
                return End.of(make(bound, function), began)
            except Exception as error:
                return End.of(error, began)

        return Call(self._threads.submit(run), event.set)

    def _spawn(self, make: Make, bound: Bound, function: Callable[[], Any]) -> Call:
        """As a task, which can be cancelled."""
        task: Future[asyncio.Task[Any]] = Future()

        async def run() -> End:
            began = time.perf_counter()
            task.set_result(asyncio.ensure_future(make(bound, function)))
            try:
                return End.of(await task.result(), began)
            except (Exception, asyncio.CancelledError) as error:
                return End.of(error, began)

        end = asyncio.run_coroutine_threadsafe(run(), self._loop)
        return Call(end, lambda: self._loop.call_soon_threadsafe(task.result(60).cancel))


def _openai_text(completion: Any) -> str | None:
    return completion.choices[0].message.content  # type: ignore[no-any-return]


def _anthropic_text(message: Any) -> str | None:
    return "".join(block.text for block in message.content if block.type == "text")
