"""Streams: modes, early leavers, cancelling; each for `for` and `async for`, where both have it."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import trio
from streamed import CHUNK, NOW, ROLE, STOP, Script, Way, receipts, way

from reprieve import (
    CallCancelled,
    Discard,
    MisuseError,
    Policy,
    Run,
    testing,
    trace_of,
)

__all__ = ["way"]


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
