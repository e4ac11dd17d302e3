"""What was delivered of a wrapped client's stream: kept as text, and the client's own items again for who asks."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from at_gateway import Drill
from sdk_clients import MODEL, QUICK, SDKS, run
from sdk_streams import WAYS, Way

import reprieve
from reprieve import trace_of
from reprieve._delivered import LAST, Items

#: The clients whose items are kept as the text that they were made of.
RECORDED = [name for name in WAYS if name.split()[0] in ("openai", "azure", "anthropic")]


@pytest.fixture(params=RECORDED)
def way(request: pytest.FixtureRequest, drill: Drill) -> Way:
    return Way(request.param, drill)


def test_what_was_delivered_before_an_error_is_made_again_as_it_was(way: Way) -> None:
    got, error = way.until_error(way.open(way.wrapped(), "#[500,sse-cut=30]"))
    assert len(got) > 30
    trace = trace_of(error)
    assert trace is not None
    assert list(trace.delivered) == got
    assert [type(item) for item in trace.delivered] == [type(item) for item in got]
    assert trace.receipts[-1]["delivered"] == len(got)


def test_a_trace_tells_what_was_delivered_until_it_was_made(way: Way) -> None:
    stream = way.open(way.wrapped(), "#[sse-whole=20]")
    items = way.items(stream)
    early = [next(items) for _ in range(10)]
    trace = stream.trace
    late = list(items)
    assert list(trace.delivered) == early
    assert list(stream.trace.delivered) == early + late


def test_items_that_their_consumer_has_dropped_are_gone(way: Way) -> None:
    stream, dropped = way.open(way.wrapped(), "#[sse-whole=100]"), list[weakref.ref[Any]]()
    gc.disable()  # counting references is enough
    try:
        for item in way.items(stream):
            dropped.append(weakref.ref(item))
        del item
        alive = [index for index, ref in enumerate(dropped) if ref() is not None]
    finally:
        gc.enable()
    held_back = [index for index in alive if index < len(dropped) - LAST]
    assert held_back == [*range(len(held_back))]
    assert len(held_back) <= 5, "the start frames and the first content"


def test_who_checks_an_answer_gets_the_items_themselves(way: Way) -> None:
    seen: list[Any] = []
    got = list(way.items(way.open(way.wrapped(check=seen.extend), "#[sse-whole=20]")))
    assert [id(item) for item in seen] == [id(item) for item in got]


def test_a_buffered_answer_is_made_once(way: Way) -> None:
    stream = way.open(way.wrapped(stream={"mode": "buffered"}), "#[sse-cut=20,sse-whole=20]")
    got = list(way.items(stream))
    assert [id(item) for item in stream.trace.delivered] == [id(item) for item in got]


@pytest.mark.parametrize("name", ["genai", "genai async"])
def test_what_answers_of_gemini_said_is_kept(drill: Drill, name: str) -> None:
    client, got = reprieve.wrap(SDKS[name].make(drill), QUICK), list[str]()
    error = run(gemini(client, got)) if SDKS[name].awaited else run(gemini_sync(client, got))
    trace = trace_of(error)
    assert trace is not None
    assert trace.receipts[-1]["delivered"] == len(got) == 30
    texts = [event["candidates"][0]["content"]["parts"][0]["text"] for event in trace.delivered]
    assert texts == got


async def gemini(client: Any, got: list[str]) -> Exception:
    try:
        async for answer in await client.aio.models.generate_content_stream(model=MODEL, contents="#[sse-cut=30]"):
            got.append(answer.text)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


async def gemini_sync(client: Any, got: list[str]) -> Exception:
    try:
        for answer in client.models.generate_content_stream(model=MODEL, contents="#[sse-cut=30]"):
            got.append(answer.text)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


# --- the items themselves --------------------------------------------------------------------------------------------


class Counted:
    """Makes numbers of texts."""

    text = ""
    noting = False

    def __init__(self, *, mute: bool = False) -> None:
        self.mute, self.made = mute, 0

    def make(self, text: str, /) -> int:
        self.made += 1
        return int(text)


def test_items_are_kept_in_order_whichever_way() -> None:
    recorder, items = Counted(), Items()
    items += [0, 1]
    for number in range(2, 12):
        recorder.text = str(number)
        if number == 2:
            keep = items.keeping(recorder)
        keep(number)
    items.append(12)
    assert (len(items), list(items), recorder.made) == (13, [*range(13)], 10)


def test_the_last_items_are_there_without_being_made_again() -> None:
    recorder, items = Counted(), Items()
    items += [0, 1, 2]
    keep = items.keeping(recorder)
    for number in (3, 4):
        recorder.text = str(number)
        keep(number)
    assert (items.last(3), items.last(0), items.last(100)) == ([2, 3, 4], [], [0, 1, 2, 3, 4])
    for number in range(5, 50):
        recorder.text = str(number)
        keep(number)
    assert items.last(100) == [*range(50 - LAST, 50)]
    assert recorder.made == 0


def test_items_that_say_nothing_are_made_again_also_at_the_end() -> None:
    recorder, items = Counted(mute=True), Items()
    items += [0, 1]
    keep = items.keeping(recorder)
    assert recorder.noting
    for number in (2, 3):
        recorder.text = str(number)
        keep(None)
    assert (items.last(3), items.copy().last(8), list(items)) == ([1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3])


def test_a_copy_keeps_what_was_there() -> None:
    items = Items()
    keep = items.keeping(None)
    keep("a")
    copied = items.copy()
    keep("b")
    items.clear()
    items.append("c")
    assert (list(copied), list(items), len(items)) == (["a"], ["c"], 1)
