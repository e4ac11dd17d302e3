"""Streams: modes, early leavers, context, sources; each for `for` and `async for`, where both have it."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import jumping
import pytest
import trio
from openai.types.chat import ChatCompletion

import reprieve
from reprieve import (
    AsyncStream,
    CallCancelled,
    Discard,
    MisuseError,
    Policy,
    Run,
    Stream,
    StreamError,
    current_attempt,
    testing,
    trace_of,
)

NOW = Policy(backoff={"base": 0, "max": 0}, jitter={"kind": "none"})


class Script:
    """A source that plays its parts, one for each attempt: items, and exceptions to raise in their place."""

    def __init__(self, *parts: Any) -> None:
        self.parts, self.played, self.closed = parts, 0, 0
        self.seen: list[Any] = []

    def _next(self) -> list[Any]:
        self.played += 1
        return list(self.parts[min(self.played, len(self.parts)) - 1])

    def plain(self) -> Iterator[Any]:
        attempt = current_attempt()
        assert attempt is not None
        self.seen.append((attempt.number, attempt.delivered))
        try:
            for item in self._next():
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, type):
                    raise item
                yield item
        finally:
            self.closed += 1

    async def coro(self) -> AsyncIterator[Any]:
        attempt = current_attempt()
        assert attempt is not None
        self.seen.append((attempt.number, attempt.delivered))
        try:
            for item in self._next():
                await _checkpoint()
                if isinstance(item, Exception):
                    raise item
                if isinstance(item, type):
                    raise item
                yield item
        finally:
            await _checkpoint()
            self.closed += 1


async def _checkpoint() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        await trio.lowlevel.checkpoint()
    else:
        await asyncio.sleep(0)


class Way:
    """How a script is streamed and consumed."""

    def __init__(self, name: str, run: Callable[[Any], Any] | None) -> None:
        self.name, self.run = name, run

    def stream(self, policy: Any, script: Script) -> Any:
        return policy.stream(script.coro if self.run else script.plain)

    def take(self, stream: Any, most: int = 1_000) -> list[Any]:
        """The items, or so many; what it raises, it raises."""
        got: list[Any] = []
        if self.run is None:
            for item in stream:
                got.append(item)
                if len(got) == most:
                    break
            stream.close()
            return got

        async def take() -> None:
            async with stream:
                async for item in stream:
                    got.append(item)
                    if len(got) == most:
                        break

        self.run(take)
        return got


WAYS = [
    Way("for", None),
    Way("asyncio", lambda function: asyncio.run(function())),
    Way("trio", trio.run),
]


@pytest.fixture(params=WAYS, ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.param
    return found


def receipts(stream: Any) -> list[tuple[str, int]]:
    return [(receipt["kind"] or receipt["outcome"], receipt["delivered"]) for receipt in stream.trace.receipts]


# --- modes ---


def test_what_fails_before_the_first_item_is_retried_unseen(way: Way) -> None:
    script = Script([ConnectionError()], [TimeoutError()], ["a", "b"])
    stream = way.stream(NOW, script)
    assert way.take(stream) == ["a", "b"]
    assert (stream.attempts, script.closed) == (3, 3)
    assert receipts(stream) == [("transport", 0), ("timeout", 0), ("success", 2)]


def test_after_it_the_error_is_the_sources_own_and_tells_what_was_delivered(way: Way) -> None:
    error = ConnectionError("cut")
    script = Script(["a", "b", error])
    stream = way.stream(NOW, script)
    got: list[Any] = []
    with pytest.raises(ConnectionError) as raised:
        got = way.take(stream)
    assert raised.value is error
    trace = trace_of(error)
    assert trace is not None
    assert trace.delivered == ("a", "b")
    assert trace.receipts[0]["reason"] == "already_delivered"
    assert trace.receipts[0]["delivered"] == 2
    assert script.played == 1
    assert got == []


def test_buffered_delivers_nothing_before_the_answer_is_whole(way: Way) -> None:
    script = Script(["a", "b", ConnectionError()], ["c", "d"])
    stream = way.stream(NOW.replace(stream={"mode": "buffered"}), script)
    assert way.take(stream) == ["c", "d"]
    assert receipts(stream) == [("stream_interrupted", 0), ("success", 2)]


def test_buffered_that_gives_up_has_delivered_nothing(way: Way) -> None:
    with pytest.raises(ConnectionError) as raised:
        way.take(way.stream(NOW.replace(stream={"mode": "buffered"}), Script(["a", ConnectionError()])))
    trace = trace_of(raised.value)
    assert trace is not None
    assert (trace.delivered, len(trace.receipts)) == ((), 3)


def test_restart_tells_what_to_discard_before_it_waits(way: Way) -> None:
    script = Script(["a", "b", ConnectionError()], [ConnectionError()], ["a", "c"])
    policy = Policy(backoff={"base": 1, "max": 1}, jitter={"kind": "none"}, stream={"mode": "restart"})
    with testing.virtual() as clock:
        stream = way.stream(policy, script)
        assert way.take(stream, 3) == ["a", "b", Discard(2)]
        assert clock.sleeps == []
        script.played = 0
        stream = way.stream(policy, script)
        assert way.take(stream) == ["a", "b", Discard(2), "a", "c"]
        assert clock.sleeps == [1.0, 1.0]
    assert receipts(stream) == [("stream_interrupted", 2), ("transport", 0), ("success", 2)]


def test_resume_hands_over_what_was_delivered_by_all_attempts(way: Way) -> None:
    script = Script(["a", ConnectionError()], [ConnectionError()], ["b", ConnectionError()], ["c"])
    policy = NOW.replace(stream={"mode": "resume"}, max_attempts=4)
    stream = way.stream(policy, script)
    assert way.take(stream) == ["a", "b", "c"]
    assert script.seen == [(1, ()), (2, ("a",)), (3, ("a",)), (4, ("a", "b"))]
    assert stream.trace.delivered == ("a", "b", "c")


def test_what_is_resumed_may_lack_only_its_end(way: Way) -> None:
    script = Script([ROLE, CHUNK, ConnectionError()], [ROLE, STOP])
    stream = way.stream(NOW.replace(stream={"mode": "resume"}), script)
    assert way.take(stream) == [ROLE, CHUNK, ROLE, STOP]
    assert receipts(stream) == [("stream_interrupted", 2), ("success", 4)]


def test_another_target_goes_on(way: Way) -> None:
    primary, backup = Script(["a", ConnectionError()]), Script(["b"])
    policy = NOW.replace(stream={"mode": "restart"}, max_attempts=1, targets=[{"id": "primary"}, {"id": "backup"}])
    bound = policy.bind(targets={"backup": backup.coro if way.run else backup.plain})
    assert way.take(way.stream(bound, primary)) == ["a", Discard(1), "b"]


def test_delivery_time_is_excluded_from_the_total() -> None:
    policy = Policy(
        total_timeout=10, backoff={"base": 1, "max": 1}, jitter={"kind": "none"}, stream={"mode": "restart"}
    )
    script = Script(["a", ConnectionError()], ["b"])
    with testing.virtual() as clock:
        stream = policy.stream(script.plain)
        assert next(stream) == "a"
        clock.advance(58)
        assert [*stream] == [Discard(1), "b"]
        assert clock.sleeps == [1.0]


# --- once, and nothing before the first item ---


def test_nothing_runs_before_the_first_item_is_asked_for(way: Way) -> None:
    script = Script(["a"])
    stream = way.stream(NOW, script)
    assert (stream.trace, stream.attempts, script.played) == (None, 0, 0)
    stream = way.stream(NOW, script)
    assert way.take(stream) == ["a"]


def test_a_stream_is_consumed_once(way: Way) -> None:
    stream = way.stream(NOW, Script(["a"]))
    way.take(stream)
    with pytest.raises(MisuseError, match="consumed once"):
        way.take(stream)


def test_the_rest_may_follow_the_first_item() -> None:
    stream = NOW.stream(Script(["a", "b", "c"]).plain)
    assert next(stream) == "a"
    assert [*stream] == ["b", "c"]
    with pytest.raises(StopIteration):
        next(stream)


def test_one_item_is_pulled_when_one_is_asked_for() -> None:
    pulled: list[int] = []

    def source() -> Iterator[int]:
        for n in range(5):
            pulled.append(n)
            yield n

    stream = NOW.stream(source)
    for n, item in enumerate(stream):
        assert (item, pulled) == (n, list(range(n + 1)))


# --- leaving early ---


def test_who_leaves_early_has_the_source_closed_and_the_call_cancelled(way: Way) -> None:
    script = Script(["a", "b", "c"])
    stream = way.stream(NOW, script)
    assert way.take(stream, 2) == ["a", "b"]
    assert script.closed == 1
    assert receipts(stream) == [("cancelled", 2)]
    assert stream.trace.ended["reason"] == "cancelled"


def test_dropping_a_stream_closes_it(no_gc: None) -> None:
    script = Script(["a", "b"])
    records: list[str] = []
    for _ in NOW.bind(sink=records.append).stream(script.plain):
        break
    assert script.closed == 1
    assert '"cancelled"' in records[-1]


def test_dropping_an_async_stream_has_the_loop_close_it() -> None:
    script = Script(["a", "b"])
    records: list[str] = []

    async def main() -> None:
        async for _ in NOW.bind(sink=records.append).stream(script.coro):
            break
        for _ in range(10):
            await asyncio.sleep(0)

    asyncio.run(main())
    assert script.closed == 1
    assert '"cancelled"' in records[-1]


def test_what_a_consumer_throws_in_is_no_failure() -> None:
    script = Script(["a", "b"])
    stream = NOW.stream(script.plain)
    items: Any = iter(stream)
    next(items)
    with pytest.raises(KeyError):
        items.throw(KeyError("mine"))
    assert (script.closed, script.played) == (1, 1)
    assert receipts(stream) == [("cancelled", 1)]


@pytest.mark.parametrize("where", ["before", "amid"])
def test_a_cancelled_task_ends_the_call(where: str) -> None:
    reached = asyncio.Event()
    closed: list[bool] = []

    async def source() -> AsyncIterator[str]:
        try:
            if where == "amid":
                yield "a"
            reached.set()
            await asyncio.Event().wait()
            yield "never"
        finally:
            closed.append(True)

    async def main() -> Any:
        stream = NOW.stream(source)

        async def consume() -> None:
            async for _ in stream:
                pass

        task = asyncio.ensure_future(consume())
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await stream.aclose()
        return stream

    stream = asyncio.run(main())
    assert closed == [True]
    assert receipts(stream) == [("cancelled", 1 if where == "amid" else 0)]


def test_a_cancelled_scope_ends_the_call_under_trio() -> None:
    async def source() -> AsyncIterator[str]:
        yield "a"
        await trio.sleep_forever()

    async def main() -> Any:
        stream = NOW.stream(source)
        with trio.move_on_after(0.01) as scope:
            async with stream:
                async for _ in stream:
                    pass
        assert scope.cancelled_caught
        return stream

    assert receipts(trio.run(main)) == [("cancelled", 1)]


def test_a_thousand_abandoned_streams_leave_nothing() -> None:
    alive = [0]

    async def source() -> AsyncIterator[int]:
        alive[0] += 1
        try:
            for n in range(100):
                await asyncio.sleep(0)
                yield n
        finally:
            await asyncio.sleep(0)
            alive[0] -= 1

    def plain() -> Iterator[int]:
        alive[0] += 1
        try:
            yield from range(100)
        finally:
            alive[0] -= 1

    async def main() -> None:
        for _ in range(1_000):
            async for _ in NOW.stream(source):
                break
            for _ in NOW.stream(plain):
                break
        gc.collect()
        for _ in range(10):
            await asyncio.sleep(0)

    problems: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context))
        loop.run_until_complete(main())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        gc.collect()
    assert (alive, problems) == ([0], [])


def test_streams_leave_no_cycle(no_gc: None) -> None:
    def sessions() -> int:
        return sum(type(thing).__name__ == "StreamSession" for thing in gc.get_objects())

    before = sessions()  # other tests' streams may be held by the libraries that they are about
    for script in (Script(["a"]), Script([ValueError]), Script(["a", ConnectionError])):
        try:
            for _ in NOW.stream(script.plain):
                pass
        except Exception as error:
            del error
    assert sessions() == before


# --- cancelling ---


def test_an_event_ends_a_stream_between_items() -> None:
    event = threading.Event()
    stream = NOW.bind(cancel=event).stream(Script(["a", "b", "c"]).plain)
    assert next(stream) == "a"
    event.set()
    with pytest.raises(CallCancelled) as raised:
        next(stream)
    trace = trace_of(raised.value)
    assert trace is not None
    assert trace.delivered == ("a",)


@pytest.mark.parametrize("loop", [asyncio, trio], ids=lambda loop: loop.__name__)
def test_a_run_that_ends_cuts_a_stream_that_waits(loop: Any) -> None:
    run, opened = Run(), threading.Event()

    async def source() -> AsyncIterator[str]:
        yield "a"
        opened.set()
        await (asyncio.Event().wait() if loop is asyncio else trio.sleep_forever())
        yield "never"

    def end() -> None:
        opened.wait(60)
        run.cancel("the user left")

    async def main() -> None:
        with pytest.raises(CallCancelled):
            async for _ in NOW.bind(run=run).stream(source):
                pass

    thread = threading.Thread(target=end)
    thread.start()
    loop.run(main()) if loop is asyncio else loop.run(main)
    thread.join()


# --- timers ---


@pytest.mark.parametrize("loop", [asyncio, trio], ids=lambda loop: loop.__name__)
@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize(
    ("stream", "before", "words"),
    [
        ({"first_item_timeout": 0.05}, 0, "no first item within 0.05 s"),
        ({"idle_timeout": 0.05}, 1, "idle for 0.05 s"),
        ({"silence_timeout": 0.05}, 0, "silent for 0.05 s"),
        ({"silence_timeout": 0.05}, 1, "silent for 0.05 s"),
    ],
)
def test_timers_cut_a_source_that_is_waited_for(
    loop: Any, buffered: bool, stream: Any, before: int, words: str
) -> None:
    async def source() -> AsyncIterator[int]:
        for n in range(before):
            yield n
        await loop.sleep(20)
        yield 9

    policy = Policy(max_attempts=1, stream={**stream, "mode": "buffered" if buffered else "before_first_item"})

    async def main() -> None:
        with pytest.raises(reprieve.AttemptTimeout, match=words) as raised:
            async for _ in policy.stream(source):
                pass
        assert raised.value.failure is not None
        assert raised.value.failure.kind == "timeout"
        assert raised.value.trace is not None
        assert raised.value.trace.delivered == ((0,) if before and not buffered else ())

    jumping.run(main, loop)


@pytest.mark.parametrize("loop", [asyncio, trio], ids=lambda loop: loop.__name__)
def test_attempt_and_total_bind_until_the_first_item_and_not_after_it(loop: Any) -> None:
    waits = [20.0, 0.0]

    async def source() -> AsyncIterator[int]:
        await loop.sleep(waits.pop(0))
        yield 1
        await loop.sleep(1.1)
        attempt = current_attempt()
        assert attempt is not None
        assert attempt.time_left > 1_000
        yield 2

    policy = NOW.replace(attempt_timeout=0.3, total_timeout=1)

    async def main() -> None:
        assert [item async for item in policy.stream(source)] == [1, 2]

    jumping.run(main, loop)


@pytest.mark.parametrize("loop", [asyncio, trio], ids=lambda loop: loop.__name__)
def test_a_slow_consumer_trips_nothing(loop: Any) -> None:
    async def source() -> AsyncIterator[int]:
        for n in range(3):
            await loop.sleep(0.01)
            yield n

    policy = NOW.replace(stream={"idle_timeout": 0.4, "silence_timeout": 0.4, "first_item_timeout": 5})

    async def main() -> None:
        got = []
        async for item in policy.stream(source):
            got.append(item)
            await loop.sleep(0.5)
        assert got == [0, 1, 2]

    jumping.run(main, loop)


@pytest.mark.parametrize("loop", [asyncio, trio], ids=lambda loop: loop.__name__)
def test_what_is_heard_is_no_silence_and_no_data(loop: Any) -> None:
    async def source() -> AsyncIterator[int]:
        attempt = current_attempt()
        assert attempt is not None
        yield 1
        for _ in range(6):
            await loop.sleep(0.1)
            attempt.heard()
        yield 2
        for _ in range(50):
            await loop.sleep(0.1)
            attempt.heard()

    policy = Policy(max_attempts=1, stream={"silence_timeout": 0.4, "idle_timeout": 0.8})

    got: list[int] = []

    async def main() -> None:
        async for item in policy.stream(source):
            got.append(item)

    with pytest.raises(reprieve.AttemptTimeout, match="idle for"):
        jumping.run(main, loop)
    assert got == [1, 2]


def test_pings_are_no_data() -> None:
    policy = Policy(max_attempts=1, stream={"idle_timeout": 1})
    with testing.virtual() as clock:

        def source() -> Iterator[Any]:
            yield "a"
            while True:
                clock.advance(0.4)
                yield {"type": "ping"}

        def consume() -> None:
            for item in policy.stream(source):
                got.append(item)
                clock.advance(5)  # the consumer's own time

        got: list[Any] = []
        with pytest.raises(reprieve.AttemptTimeout, match="idle for 1 s"):
            consume()
    assert got == ["a", {"type": "ping"}, {"type": "ping"}]


def test_a_transport_hears_of_a_timer_that_has_run_out() -> None:
    policy = Policy(max_attempts=1, stream={"first_item_timeout": 1})
    with testing.virtual() as clock:

        def source() -> Iterator[Any]:
            attempt = current_attempt()
            assert attempt is not None
            assert attempt.timeout == 1.0
            for _ in range(5):
                clock.advance(0.4)
                attempt.heard()
            yield "late"

        with pytest.raises(reprieve.AttemptTimeout, match="no first item within 1 s"):
            [*policy.stream(source)]


def test_a_plain_source_that_is_late_is_late_and_no_failure() -> None:
    with testing.virtual() as clock:

        def source() -> Iterator[str]:
            clock.advance(100)
            yield "late"

        assert [*Policy(attempt_timeout=1).stream(source)] == ["late"]


# --- context and layers ---


def test_the_attempt_is_visible_to_the_source_alone(way: Way) -> None:
    def look() -> int | None:
        attempt = current_attempt()
        return attempt.number if attempt else None

    inside: list[int | None] = []

    def plain() -> Iterator[int | None]:
        for _ in range(3):
            inside.append(look())
            yield look()
        inside.append(look())

    async def coro() -> AsyncIterator[int | None]:
        for item in plain():
            await _checkpoint()
            yield item

    outside: list[int | None] = []

    async def take() -> None:
        async for _ in NOW.stream(coro):
            outside.append(look())
        outside.append(look())

    if way.run is None:
        for _ in NOW.stream(plain):
            outside.append(look())
        outside.append(look())
    else:
        way.run(take)
    assert (inside, outside) == ([1] * 4, [None] * 4)


def test_a_call_inside_of_a_stream_adds_and_never_multiplies() -> None:
    calls = [0]

    @NOW
    def ask() -> str:
        calls[0] += 1
        raise ConnectionError

    def source() -> Iterator[str]:
        yield ask()

    stream = NOW.stream(source)
    with pytest.raises(ConnectionError):
        list(stream)
    assert calls == [3]
    assert stream.trace is not None
    assert len(stream.trace.receipts) == 1


def test_a_stream_inside_of_a_call_is_bounded_by_it() -> None:
    seen: list[float] = []

    def source() -> Iterator[str]:
        attempt = current_attempt()
        assert attempt is not None
        seen.append(attempt.timeout)
        yield "a"

    with testing.virtual():

        @Policy(attempt_timeout=5)
        def ask() -> list[str]:
            stream = Policy().stream(source)
            got = [*stream]
            assert stream.trace is not None
            assert stream.trace.receipts[0]["outer_trace_id"]
            return got

        assert ask() == ["a"]
    assert seen == [5.0]


def test_a_stream_inside_of_a_stream() -> None:
    inner, outer = Script(["a", ConnectionError()]), [0]

    def source() -> Iterator[str]:
        outer[0] += 1
        yield from NOW.replace(stream={"mode": "buffered"}).stream(inner.plain)

    with pytest.raises(ConnectionError):
        [*NOW.stream(source)]
    assert (inner.played, outer) == (3, [1])


# --- what functions may answer ---


def test_plain_functions_may_answer_anything_that_is_iterated() -> None:
    closed: list[str] = []

    class Client:
        """As clients' stream objects are: an iterator that is also closed."""

        def __init__(self) -> None:
            self.items = iter("ab")

        def __iter__(self) -> Iterator[str]:
            return self.items

        def __next__(self) -> str:
            return next(self.items)

        def close(self) -> None:
            closed.append("client")

    @contextmanager
    def manager() -> Iterator[Client]:
        try:
            yield Client()
        finally:
            closed.append("manager")

    @contextmanager
    def of_list() -> Iterator[list[str]]:
        yield ["a", "b"]

    answers: list[Callable[[], Any]] = [lambda: ["a", "b"], lambda: iter("ab"), Client, manager, of_list]
    for answer in answers:
        stream = NOW.stream(answer)
        assert isinstance(stream, Stream)
        assert [*stream] == ["a", "b"]
    assert closed == ["client", "client", "manager"]


@pytest.mark.parametrize("run", [way.run for way in WAYS if way.run])
def test_async_functions_may_answer_anything_that_is_iterated(run: Any) -> None:
    closed: list[str] = []

    async def generator() -> AsyncIterator[str]:
        for item in "ab":
            yield item

    async def coroutine() -> AsyncIterator[str]:
        return generator()

    class Client:
        def __init__(self) -> None:
            self.items = iter("ab")

        def __aiter__(self) -> AsyncIterator[str]:
            return generator()

        async def __anext__(self) -> str:
            for item in self.items:
                return item
            raise StopAsyncIteration

        async def close(self) -> None:
            closed.append("client")

    @asynccontextmanager
    async def manager() -> AsyncIterator[Client]:
        try:
            yield Client()
        finally:
            closed.append("manager")

    async def plain() -> list[str]:
        return ["a", "b"]

    def hidden() -> Awaitable[AsyncIterator[str]]:
        return coroutine()

    async def main() -> None:
        for answer in (generator, coroutine, Client, manager, plain, hidden):
            stream: Any = NOW.stream(answer)
            assert isinstance(stream, AsyncStream)
            assert [item async for item in stream] == ["a", "b"]

    run(main)
    assert closed == ["client", "client", "manager"]


def test_what_cannot_be_iterated_is_named() -> None:
    with pytest.raises(TypeError, match="answered a int"):
        [*NOW.stream(int)]
    for whole in (str, dict, ChatCompletion.model_construct):
        with pytest.raises(TypeError, match="stream=True"):
            [*NOW.stream(whole)]

    async def coroutine() -> None: ...

    with pytest.raises(TypeError, match="use `async for`"):
        [*NOW.stream(lambda: coroutine())]


def test_who_has_both_faces_is_taken_by_the_one_that_is_asked_for(way: Way) -> None:
    script = Script(["a", "b"])
    source: Any = script.coro if way.run else script.plain
    inner = NOW.stream(lambda: source())
    assert way.take(NOW.stream(lambda: inner)) == ["a", "b"]


def test_a_decorated_generator_is_a_stream() -> None:
    script = Script([ConnectionError()], ["a"])

    class Client:
        @NOW
        def words(self, first: str) -> Iterator[str]:
            """Some words."""
            yield first
            yield from script.plain()

    assert Client.words.__doc__ == "Some words."
    script.played = 1
    assert [*Client().words("b")] == ["b", "a"]


# --- signs of trouble ---

CHUNK = {"object": "chat.completion.chunk", "id": "c", "choices": [{"index": 0, "delta": {"content": "a"}}]}
ROLE = {**CHUNK, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
STOP = {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
FILTERED = {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]}
USAGE = {**CHUNK, "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
ERROR = {"error": {"type": "overloaded_error", "message": "Overloaded"}}
START = {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}}
DELTA = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}
FINISH = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
END = {"type": "message_stop"}


def test_start_frames_are_held_back_and_delivered_intact(way: Way) -> None:
    script = Script([ROLE, ERROR], [ROLE, ROLE, ConnectionError()], [ROLE, CHUNK, STOP, USAGE])
    stream = way.stream(NOW, script)
    got = way.take(stream)
    assert got == [ROLE, CHUNK, STOP, USAGE]
    assert all(seen is sent for seen, sent in zip(got, [ROLE, CHUNK, STOP, USAGE], strict=True))
    assert receipts(stream) == [("overloaded", 0), ("stream_interrupted", 0), ("success", 4)]
    last = stream.trace.receipts[-1]
    assert (last["input_tokens"], last["output_tokens"]) == (3, 2)


@pytest.mark.parametrize(
    ("items", "kind", "words"),
    [
        ([ROLE, CHUNK, ERROR], "overloaded", "Overloaded"),
        ([ROLE, CHUNK, "upstream connect error"], "stream_interrupted", "upstream connect error"),
        ([ROLE, CHUNK], "stream_interrupted", "without its finish frame"),
        ([ROLE], "stream_interrupted", "without its finish frame"),
        ([ROLE, STOP], "invalid_output", "nothing in it"),
        ([ROLE, CHUNK, FILTERED], "content_filtered", "says that its answer failed"),
        ([START, DELTA, START, DELTA, FINISH, END], "stream_interrupted", "started again"),
    ],
)
def test_an_answer_that_is_no_whole_answer(way: Way, items: list[Any], kind: str, words: str) -> None:
    stream = way.stream(NOW.replace(max_attempts=1), Script(items))
    with pytest.raises(StreamError, match=words) as raised:
        way.take(stream)
    assert raised.value.failure is not None
    assert raised.value.failure.kind == kind
    assert receipts(stream)[0][0] == kind


def test_such_an_answer_is_replaced_where_nothing_was_delivered(way: Way) -> None:
    policy = NOW.replace(
        stream={"mode": "buffered"},
        fallback_on=["content_filtered"],
        max_attempts=2,
        targets=[{"id": "primary"}, {"id": "backup"}],
    )
    script = Script([ROLE, CHUNK, ERROR], [ROLE, CHUNK, FILTERED], [ROLE, CHUNK, STOP])
    stream = way.stream(policy, script)
    assert way.take(stream) == [ROLE, CHUNK, STOP]
    assert receipts(stream) == [("overloaded", 0), ("content_filtered", 0), ("success", 3)]


def test_who_leaves_at_the_finish_frame_has_had_the_whole_answer(way: Way) -> None:
    stream = way.stream(NOW, Script([START, DELTA, FINISH, END]))
    assert way.take(stream, 3) == [START, DELTA, FINISH]
    assert receipts(stream) == [("success", 3)]
    receipt = stream.trace.receipts[0]
    assert (receipt["input_tokens"], receipt["output_tokens"]) == (5, 2)


@pytest.mark.parametrize(
    "items",
    [
        [],
        [None, ""],
        [{"word": 1}, {"word": 2}],
        [{"type": "row"}, "text", b"bytes", 3, object()],
        [{"type": ["unhashable"]}, {"type": {}}],
        ["[DONE]"],
    ],
)
def test_what_is_no_providers_is_never_in_doubt(way: Way, items: list[Any]) -> None:
    stream = way.stream(NOW, Script(items))
    assert way.take(stream) == items
    assert receipts(stream) == [("success", len(items))]


def test_what_the_user_says_of_an_error_counts() -> None:
    script = Script([ROLE, ERROR], [ROLE, CHUNK, STOP])
    seen: list[Exception] = []

    def classify(error: Exception) -> str:
        seen.append(error)
        return "billing"

    with pytest.raises(StreamError):
        [*NOW.bind(classify=classify).stream(script.plain)]
    assert isinstance(seen[0], StreamError)
    assert seen[0].event is ERROR


# --- a check of the whole answer ---


def test_a_check_may_refuse_an_answer_that_nobody_has_had(way: Way) -> None:
    seen: list[Any] = []

    def check(items: Any) -> str | None:
        seen.append(items)
        return None if len(items) > 1 else "schema_invalid"

    async def check_later(items: Any) -> str | None:
        await _checkpoint()
        return check(items)

    for function in (check, check_later) if way.run else (check,):
        seen.clear()
        policy = NOW.replace(stream={"mode": "buffered"}, retry_on=["schema_invalid"])
        stream = way.stream(policy.bind(check=function), Script(["a"], ["a", "b"]))
        assert way.take(stream) == ["a", "b"]
        assert seen == [["a"], ["a", "b"]]
        assert receipts(stream) == [("schema_invalid", 0), ("success", 2)]
