"""Streams beside each other: who leaves closes all, each keeps its task and context, and nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import trio
from hedged import FOREVER, SOON, USER, Source, first_hangs, hedging, run, run_bare, shown, taken

from reprieve import CallCancelled, Run, current_attempt

pytestmark = [pytest.mark.filterwarnings("error")]


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
            await first_hangs()
            raise Quit
            yield

        await taken(hedging().stream(source))

    with pytest.raises(Quit):
        run(main)


def test_a_source_may_hold_what_belongs_to_its_task() -> None:
    async def main() -> Any:
        async def source() -> AsyncIterator[str]:
            with trio_like():
                await first_hangs()
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
            await first_hangs()
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
            await first_hangs()
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
