"""What items say: errors, second starts, missing ends; and a check of the whole answer."""

from __future__ import annotations

from typing import Any

import pytest
from streamed import (
    CHUNK,
    DELTA,
    END,
    ERROR,
    FILTERED,
    FINISH,
    NOW,
    ROLE,
    START,
    STOP,
    USAGE,
    Script,
    Way,
    checkpoint,
    receipts,
    way,
)

from reprieve import (
    StreamError,
)

__all__ = ["way"]


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
        await checkpoint()
        return check(items)

    for function in (check, check_later) if way.run else (check,):
        seen.clear()
        policy = NOW.replace(stream={"mode": "buffered"}, retry_on=["schema_invalid"])
        stream = way.stream(policy.bind(check=function), Script(["a"], ["a", "b"]))
        assert way.take(stream) == ["a", "b"]
        assert seen == [["a"], ["a", "b"]]
        assert receipts(stream) == [("schema_invalid", 0), ("success", 2)]
