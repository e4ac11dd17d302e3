"""Streams beside each other, under asyncio: the first with content goes on alone, and nothing of the others is left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import openai
import pytest
import trio
from at_gateway import Drill
from test_hedging import SOON, USER, hedging, run, run_bare, shown

from reprieve import AttemptTimeout, CallCancelled, Discard, Policy, Run, current_attempt, trace_of, wrap

pytestmark = [pytest.mark.filterwarnings("error")]

#: What an attempt does until it is cancelled.
FOREVER = object()


class Source:
    """Streams that bring what their attempt's list says: words, exceptions to raise, events to wait for."""

    def __init__(self, scripts: dict[int, list[Any]]) -> None:
        self.scripts = scripts
        self.started: list[int] = []
        self.left: dict[int, str] = {}
        self.again = asyncio.Event()

    async def __call__(self) -> AsyncIterator[str]:
        attempt = current_attempt()
        assert attempt is not None
        number, task = attempt.number, asyncio.current_task()
        self.started.append(number)
        self.again.set()
        try:
            for step in self.scripts.get(number, [FOREVER]):
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, str):
                    yield step
                    assert current_attempt() is attempt, "each attempt sees itself"
                    assert asyncio.current_task() is task, "a source stays in its task"
                else:
                    await (step.wait() if step is not FOREVER else asyncio.Event().wait())
            self.left[number] = "ended"
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # unwinding takes its time
            self.left[number] = "cancelled"
            raise
        except GeneratorExit:
            self.left[number] = "closed"
            raise
        finally:
            self.left.setdefault(number, "raised")

    async def attempts(self, count: int) -> None:
        """Waits until so many have started."""
        while len(self.started) < count:
            self.again.clear()
            await self.again.wait()


async def taken(stream: Any, items: list[Any] | None = None) -> list[Any]:
    found = [] if items is None else items
    async for item in stream:
        found.append(item)
    return found


def test_the_hedge_is_first_and_goes_on_alone() -> None:
    async def main() -> Any:
        source = Source({2: ["a", "b", "c"]})
        stream = hedging().stream(source)
        assert await taken(stream) == ["a", "b", "c"]
        assert source.left == {1: "cancelled", 2: "ended"}
        return stream

    stream = run(main)
    assert shown(stream) == [(1, "cancelled", "superseded"), (2, "success", "done")]
    assert [receipt["delivered"] for receipt in stream.trace.receipts] == [0, 3]
    assert stream.trace.delivered == ("a", "b", "c")


def test_the_first_one_may_still_be_first() -> None:
    async def main() -> Any:
        go = asyncio.Event()
        source = Source({1: [go, "a", "b"]})
        stream = hedging().stream(source)
        taking = asyncio.ensure_future(taken(stream))
        await source.attempts(2)
        go.set()
        assert await taking == ["a", "b"]
        assert source.left == {1: "ended", 2: "cancelled"}
        return stream

    assert shown(run(main)) == [(2, "cancelled", "superseded"), (1, "success", "done")]


def test_a_stream_with_content_is_not_joined() -> None:
    async def main() -> Any:
        go = asyncio.Event()
        source = Source({1: ["a", go, "b"]})
        taking = asyncio.ensure_future(taken(hedging().stream(source)))
        await asyncio.sleep(4 * SOON)
        go.set()
        assert await taking == ["a", "b"]
        assert source.started == [1]

    run(main)


def test_start_frames_are_no_content() -> None:
    start: Any = {"type": "message_start", "message": {"id": "m"}}
    text: Any = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}

    async def main() -> Any:
        async def source() -> AsyncIterator[Any]:
            attempt = current_attempt()
            assert attempt is not None
            yield {**start, "attempt": attempt.number}
            if attempt.number == 1:
                await asyncio.Event().wait()
            yield text
            yield {"type": "message_stop"}

        return await taken(hedging().stream(source))

    assert run(main) == [{**start, "attempt": 2}, text, {"type": "message_stop"}]


def test_the_first_item_waits_for_no_loser() -> None:
    async def main() -> Any:
        unwinding, go = asyncio.Event(), asyncio.Event()

        async def source() -> AsyncIterator[str]:
            attempt = current_attempt()
            assert attempt is not None
            if attempt.number == 2:
                yield "fast"
                return
            try:
                await asyncio.Event().wait()
            finally:
                unwinding.set()
                await go.wait()

        stream = hedging().stream(source)
        assert await anext(stream) == "fast"
        await unwinding.wait()
        ending = asyncio.ensure_future(taken(stream))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not ending.done(), "the call ends when all have unwound"
        go.set()
        assert await ending == []

    run(main)


def test_a_failure_waits_for_its_sibling() -> None:
    async def main() -> Any:
        go = asyncio.Event()
        source = Source({1: [go, "a"], 2: [ConnectionError("second")]})
        stream = hedging().stream(source)
        taking = asyncio.ensure_future(taken(stream))
        await source.attempts(2)
        await asyncio.sleep(SOON)
        go.set()
        assert await taking == ["a"]
        return stream

    assert shown(run(main)) == [(2, "failure", "pending"), (1, "success", "done")]


def test_when_both_have_failed_there_is_another_attempt() -> None:
    async def main() -> Any:
        go = asyncio.Event()
        source = Source({1: [go, ConnectionError("first")], 2: [ConnectionError("second")], 3: ["a"]})
        stream = hedging().stream(source)
        taking = asyncio.ensure_future(taken(stream))
        await source.attempts(2)
        await asyncio.sleep(SOON)
        go.set()
        assert await taking == ["a"]
        return stream

    assert shown(run(main)) == [(2, "failure", "pending"), (1, "failure", "retry"), (3, "success", "done")]


def test_the_last_failure_is_raised_as_it_is() -> None:
    errors = {1: TimeoutError("first"), 2: ConnectionError("second")}

    async def main() -> Any:
        go = asyncio.Event()
        source = Source({1: [go, errors[1]], 2: [errors[2]]})
        taking = asyncio.ensure_future(taken(hedging(max_attempts=1).stream(source)))
        await source.attempts(2)
        await asyncio.sleep(SOON)
        go.set()
        await taking

    with pytest.raises(TimeoutError) as caught:
        run(main)
    assert caught.value is errors[1]
    assert shown(caught.value) == [(2, "failure", "pending"), (1, "failure", "stop")]


def test_a_failure_amid_the_answer_is_the_winners_alone() -> None:
    items: list[Any] = []
    cut = ConnectionError("cut")

    async def main() -> Any:
        await taken(hedging().stream(Source({2: ["a", cut]})), items)

    with pytest.raises(ConnectionError) as caught:
        run(main)
    assert caught.value is cut
    assert items == ["a"]
    trace = trace_of(cut)
    assert trace is not None
    assert trace.ended is not None
    assert (trace.ended["reason"], trace.delivered) == ("already_delivered", ("a",))


def test_every_attempt_has_its_own_timers() -> None:
    async def main() -> Any:
        source = Source({3: ["a"]})
        stream = hedging(max_attempts=2, stream={"first_item_timeout": 4 * SOON}).stream(source)
        assert await taken(stream) == ["a"]
        assert source.left == {1: "cancelled", 2: "cancelled", 3: "ended"}
        return stream

    assert shown(run(main)) == [(1, "failure", "pending"), (2, "failure", "retry"), (3, "success", "done")]


def test_a_timer_that_has_run_out_before_the_source_is_asked_cancels_nobody_else() -> None:
    async def main() -> Any:
        policy = hedging(max_attempts=1, stream={"first_item_timeout": 0.001})
        asyncio.get_running_loop().call_soon(time.sleep, 0.01)  # before the attempt's task has begun
        with pytest.raises(AttemptTimeout, match="no first item"):
            await taken(policy.stream(Source({1: ["at once"]})))
        await asyncio.sleep(0)

    asyncio.run(main())


def test_the_winner_is_still_watched() -> None:
    async def main() -> Any:
        await taken(hedging(stream={"idle_timeout": 4 * SOON}).stream(Source({2: ["a", FOREVER]})))

    with pytest.raises(AttemptTimeout, match="attempt 2 was idle"):
        run(main)


def test_an_answer_and_a_first_item_at_the_same_time() -> None:
    """The one that has ended without content would end the call: it is told of when the other has not been heard."""

    async def main() -> Any:
        go = asyncio.Event()
        source = Source({1: [go, "a", "b"], 2: [go]})
        stream = hedging().stream(source)
        taking = asyncio.ensure_future(taken(stream))
        await source.attempts(2)
        go.set()
        assert await taking == ["a", "b"]
        return stream

    assert shown(run(main)) == [(2, "cancelled", "superseded"), (1, "success", "done")]


@pytest.mark.parametrize("check", [None, lambda items: items != ["no"]])
def test_an_answer_without_content_is_an_answer(check: Callable[[Any], bool] | None) -> None:
    async def main() -> Any:
        source = Source({2: []})
        assert await taken(hedging().bind(check=check).stream(source)) == []
        assert source.left == {1: "cancelled", 2: "ended"}

    run(main)


def test_each_calls_the_function_of_its_target_whatever_becomes_of_the_other() -> None:
    """While a hedge's request is prepared, the attempt that it has joined fails."""

    async def main() -> Any:
        prepared, go = asyncio.Event(), asyncio.Event()
        primary = Source({1: [ConnectionError("primary")]})
        backup = Source({2: [go, ConnectionError("backup")], 3: ["a"]})

        async def prepare(request: dict[str, Any], target: str) -> None:
            attempt = current_attempt()
            assert attempt is not None
            if attempt.number == 3:
                go.set()
                await prepared.wait()

        policy = hedging(max_attempts=1, targets=[{"id": "primary"}, {"id": "backup"}])
        bound = policy.bind(targets={"backup": backup}, prepare=prepare)
        taking = asyncio.ensure_future(taken(bound.stream(primary)))
        while 2 not in backup.left:
            await asyncio.sleep(SOON)
        prepared.set()
        assert await taking == ["a"]
        assert (primary.started, backup.started) == ([1], [2, 3])

    run(main)


# --- modes ---


def test_buffered() -> None:
    async def main() -> Any:
        source = Source({2: ["a", ConnectionError("cut")], 3: ["a", "b"]})
        stream = hedging(stream={"mode": "buffered"}).stream(source)
        assert await taken(stream) == ["a", "b"]
        return stream

    stream = run(main)
    assert shown(stream) == [(1, "cancelled", "superseded"), (2, "failure", "retry"), (3, "success", "done")]


def test_restart() -> None:
    async def main() -> Any:
        source = Source({2: ["a", ConnectionError("cut")], 4: ["a", "b"]})
        assert await taken(hedging(stream={"mode": "restart"}).stream(source)) == ["a", Discard(1), "a", "b"]
        assert source.left == {1: "cancelled", 2: "raised", 3: "cancelled", 4: "ended"}

    run(main)


def test_resume() -> None:
    async def main() -> Any:
        seen: list[tuple[int, tuple[Any, ...]]] = []

        async def source() -> AsyncIterator[str]:
            attempt = current_attempt()
            assert attempt is not None
            seen.append((attempt.number, tuple(attempt.delivered)))
            if attempt.number % 2 == 1:
                await asyncio.Event().wait()
            yield "a" if attempt.number == 2 else "b"
            if attempt.number == 2:
                raise ConnectionError

        assert await taken(hedging(stream={"mode": "resume"}).stream(source)) == ["a", "b"]
        return seen

    assert run(main) == [(1, ()), (2, ()), (3, ("a",)), (4, ("a",))]


# --- who leaves ---


def test_who_stops_early_closes_all() -> None:
    async def main() -> Any:
        source = Source({2: ["a", "b"]})
        async with hedging().stream(source) as stream:
            async for item in stream:
                assert item == "a"
                break
        assert source.left == {1: "cancelled", 2: "closed"}
        return stream

    assert shown(run(main)) == [(1, "cancelled", "superseded"), (2, "cancelled", "stop")]


@pytest.mark.parametrize("when", ["before the first item", "after it"])
@pytest.mark.parametrize("by", ["task", "run", "event"])
def test_a_cancellation_reaches_all(by: str, when: str) -> None:
    async def main() -> Any:
        source, run_, event = Source({} if when.startswith("before") else {2: ["a", FOREVER]}), Run(), threading.Event()
        policy = hedging()
        bound = policy.bind(run=run_) if by == "run" else policy.bind(cancel=event)
        items: list[Any] = []
        task = asyncio.ensure_future(taken(bound.stream(source), items))
        await source.attempts(2)
        while when.startswith("after") and not items:
            await asyncio.sleep(0)
        match by:
            case "task":
                task.cancel()
            case "run":
                run_.cancel("enough")
            case _:
                event.set()
        with pytest.raises(asyncio.CancelledError if by == "task" else CallCancelled):
            await task
        # An event may be seen before the source is asked again: then it is only closed.
        assert source.left[1] == "cancelled"
        assert source.left[2] in ("cancelled", "closed")

    run(main)


def test_a_consumer_that_is_cancelled_before_anything_has_run() -> None:
    async def main() -> Any:
        source = Source({})
        task = asyncio.ensure_future(taken(hedging().stream(source)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert set(source.left.values()) <= {"cancelled"}

    run(main)


@pytest.mark.parametrize("does", ["raises", "goes on"])
def test_what_a_loser_makes_of_its_cancellation_is_nobodys(does: str) -> None:
    async def main() -> Any:
        async def source() -> AsyncIterator[str]:
            attempt = current_attempt()
            assert attempt is not None
            if attempt.number == 1:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()
                if does == "raises":
                    raise ValueError("too late")
                yield "too late"
            yield "a"

        stream = hedging().stream(source)
        assert await taken(stream) == ["a"]
        return stream

    assert shown(run(main)) == [(1, "cancelled", "superseded"), (2, "success", "done")]


def test_what_is_no_exception_comes_out_as_it_is() -> None:
    class Quit(BaseException):
        pass

    async def main() -> Any:
        async def source() -> AsyncIterator[str]:
            attempt = current_attempt()
            assert attempt is not None
            if attempt.number == 1:
                await asyncio.Event().wait()
            raise Quit
            yield

        await taken(hedging().stream(source))

    with pytest.raises(Quit):
        run(main)


# --- tasks and contexts ---


def test_a_source_may_hold_what_belongs_to_its_task() -> None:
    async def main() -> Any:
        async def source() -> AsyncIterator[str]:
            attempt = current_attempt()
            assert attempt is not None
            with trio_like():
                if attempt.number == 1:
                    await asyncio.Event().wait()
                yield "a"
                yield "b"

        @contextlib.contextmanager
        def trio_like() -> Iterator[None]:
            task = asyncio.current_task()
            yield
            assert asyncio.current_task() is task, "opened in one task, closed in another"

        stream = hedging().stream(source)
        assert await asyncio.ensure_future(anext(stream)) == "a"
        assert await asyncio.ensure_future(anext(stream)) == "b"
        assert await taken(stream) == []

    run(main)


def test_each_has_a_context_of_its_own() -> None:
    seen: list[str] = []

    async def main() -> Any:
        USER.set("caller")

        async def source() -> AsyncIterator[str]:
            seen.append(USER.get())
            USER.set(f"attempt {len(seen)}")
            if len(seen) == 1:
                await asyncio.Event().wait()
            yield USER.get()
            yield USER.get()

        assert await taken(hedging().stream(source)) == ["attempt 2", "attempt 2"]
        assert USER.get() == "caller"
        assert current_attempt() is None

    run(main)
    assert seen == ["caller", "caller"]


def test_nothing_is_kept_alive(no_gc: None) -> None:
    class Answer:
        pass

    async def main() -> Any:
        async def source() -> AsyncIterator[Any]:
            attempt = current_attempt()
            assert attempt is not None
            if attempt.number == 1:
                await asyncio.Event().wait()
            yield Answer()

        kept = [weakref.ref(item) async for item in hedging().stream(source)]
        await asyncio.sleep(0)
        return kept[0]

    found = run_bare(main)
    assert found() is None


def test_no_error_is_in_a_cycle(no_gc: None) -> None:
    class Oops(Exception):
        pass

    async def main() -> Any:
        async def source() -> AsyncIterator[str]:
            attempt = current_attempt()
            assert attempt is not None
            if attempt.number == 1:
                await asyncio.Event().wait()
            yield "a"
            raise Oops

        try:
            await taken(hedging().stream(source))
        except Oops as error:
            return weakref.ref(error)

    assert run_bare(main)() is None


def test_one_that_is_dropped_is_closed() -> None:
    async def main() -> Any:
        source = Source({2: ["a", "b"]})
        stream = hedging().stream(source)
        assert await anext(stream) == "a"
        del stream
        gc.collect()
        while len(source.left) < 2:
            await asyncio.sleep(0)
        assert source.left == {1: "cancelled", 2: "closed"}
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)

    run(main)


def test_under_trio_a_stream_is_not_joined() -> None:
    async def main() -> list[Any]:
        async def source() -> AsyncIterator[str]:
            await trio.sleep(3 * SOON)
            yield "a"

        stream = hedging().stream(source)
        found = await taken(stream)
        assert stream.attempts == 1
        return found

    assert trio.run(main) == ["a"]


# --- the real thing ---


@pytest.mark.parametrize("slow", ["slow=600000", "sse-first=600000"], ids=["no answer", "no content"])
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.filterwarnings("default")
def test_the_real_client(origin: str, wrapped: bool, slow: str) -> None:
    """The request that comes first has its answer, or its first content, in ten minutes; the other at once."""
    policy = Policy(hedge={"after": 0.2})

    async def main() -> Any:
        drill = Drill(origin)
        async with openai.AsyncOpenAI(
            api_key="none", base_url=drill.url, max_retries=0, default_headers=drill.headers
        ) as client:
            used = wrap(client, policy) if wrapped else client

            async def create() -> Any:
                return await used.chat.completions.create(
                    model="gpt-test",
                    stream=True,
                    messages=[{"role": "user", "content": f"Say hello. #[{slow},ok]"}],
                )

            stream: Any = await create() if wrapped else policy.stream(create)
            chunks = [chunk async for chunk in stream]
        return chunks, stream.trace, drill

    chunks, trace, drill = asyncio.run(main())
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert sorted(r["attempt"] for r in trace.receipts) == [1, 2]
    assert [r["decision"] for r in trace.receipts] == ["superseded", "done"]
    assert len(drill.visits()) == 2
