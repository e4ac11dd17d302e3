"""Streams beside each other, under asyncio: the first with content goes on alone, in every mode."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hedged import FOREVER, SOON, Source, hedging, run, shown, taken

from reprieve import AttemptTimeout, Discard, current_attempt, trace_of

pytestmark = [pytest.mark.filterwarnings("error")]


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
