"""Streams of wrapped clients on the gateway: the SDKs' own objects and helpers over retried calls."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import botocore.eventstream
import openai
import pytest
from at_gateway import ANSWER, OFTEN, Drill, cut_then
from sdk_clients import MODEL, QUICK, SDKS, messages, run
from sdk_streams import WAYS, Way, chat, claude, converse, gemini, said

import reprieve
from reprieve import ConfigError, Discard, MisuseError, Run, StreamError, trace_of


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, drill: Drill) -> Way:
    return Way(request.param, drill)


# --- all of them -----------------------------------------------------------------------------------------------------


def test_a_stream_comes_as_it_is(way: Way) -> None:
    assert way.text(way.wrapped(), "hello") == ANSWER
    assert way.ended["outcome"] == "success"
    assert way.drill.played() == ["ok"]


def test_what_fails_before_the_first_content_is_tried_again(way: Way) -> None:
    assert way.text(way.wrapped(), "#[503,sse-error=0,ok]") == ANSWER
    assert way.drill.played() == ["503", "sse-error=0", "ok"]
    assert way.ended["attempts"] == 3


def test_what_fails_after_it_is_not(way: Way) -> None:
    got, error = way.until_error(way.open(way.wrapped(), "#[sse-cut=3]"))
    assert "".join(map(said, got)) == "The gateway answers"
    trace = trace_of(error)
    assert trace is not None
    assert trace.ended is not None
    assert trace.ended["reason"] == "already_delivered"
    assert len(trace.delivered or ()) == len(got)
    assert way.drill.played() == ["sse-cut=3"]


def test_an_answer_that_is_whole_before_it_is_shown_may_break_anywhere(way: Way) -> None:
    client = way.wrapped(stream={"mode": "buffered"})
    assert way.text(client, "#[sse-cut=3,sse-error=2,ok]") == ANSWER
    assert way.drill.played() == ["sse-cut=3", "sse-error=2", "ok"]


def test_tokens_and_cost_of_streams_are_recorded(way: Way) -> None:
    client = way.wrapped()
    assert way.text(client, "one two #[500,ok]") == ANSWER
    assert (way.ended["input_tokens"], way.ended["output_tokens"]) == (10, 9)
    assert way.ended["cost"] == pytest.approx(0.01)


def test_a_refusal_is_raised_and_not_repeated(way: Way) -> None:
    with pytest.raises(way.sdk.refused):
        way.text(way.wrapped(), "#[401]")
    assert way.drill.played() == ["401"]


def test_a_stream_that_hangs_meets_the_attempts_timeout(way: Way) -> None:
    # Buffered: a client that cannot be interrupted has the time for each read, and may cut an answer in its midst.
    client = way.wrapped(attempt_timeout=0.3, max_attempts=OFTEN, stream={"mode": "buffered"})
    assert way.text(client, "#[sse-stall=0,ok]") == ANSWER
    assert cut_then(way.drill.played(), "ok", cut="sse-stall=0")


def test_a_stream_that_falls_silent_is_left(way: Way) -> None:
    # Buffered, because on a busy machine what is meant to be answered may be left in its midst.
    client = way.wrapped(stream={"silence_timeout": 0.3, "mode": "buffered"}, max_attempts=OFTEN)
    assert way.text(client, "#[sse-stall=0,ok]") == ANSWER
    left_after_content(way, stream={"silence_timeout": 0.3})


def test_a_plain_functions_stream_pauses_no_longer_than_its_attempt_had(way: Way) -> None:
    if not way.sdk.awaited:
        left_after_content(way, attempt_timeout=0.3)


def left_after_content(way: Way, **fields: Any) -> None:
    client = way.wrapped(**fields, max_attempts=OFTEN)
    items, _error = way.until_error(way.open(client, "#[sse-stall=1]"))
    assert "".join(map(said, items))
    receipt = json.loads(way.lines[-2])
    assert (receipt["kind"], receipt["reason"]) == ("timeout", "already_delivered")


def test_who_stops_early_ends_the_call(way: Way) -> None:
    items = way.items(way.open(way.wrapped(), "#[sse-stall=1]"))
    while not said(next(items)):
        pass
    items.close()
    del items
    import gc

    gc.collect()
    if not way.sdk.awaited:
        assert way.ended["outcome"] == "cancelled"


# --- the SDKs' own objects and helpers -------------------------------------------------------------------------------


def test_the_stream_is_the_sdks_own(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK)
    stream = chat(client, "#[500,ok]")
    assert isinstance(stream, openai.Stream)
    assert stream.response.status_code == 200
    with stream as entered:
        first = next(iter(entered))
        assert first.model == MODEL
    assert stream.response.is_closed
    awaited = reprieve.wrap(SDKS["anthropic async"].make(drill), QUICK)

    async def main() -> None:
        stream = await claude(awaited, "#[529,ok]")
        assert isinstance(stream, anthropic.AsyncStream)
        async with stream:
            assert (await anext(stream)).type == "message_start"
        assert stream.response.is_closed

    run(main())
    other = reprieve.wrap(SDKS["bedrock"].make(drill), QUICK)
    assert isinstance(converse(other, "hello"), botocore.eventstream.EventStream)


def test_a_stream_is_consumed_once(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK)
    stream = chat(client, "#[ok]")
    assert trace_of(stream).trace_id == stream.trace.trace_id  # the call is under way
    for _item in stream:
        break
    assert list(stream)  # who left a loop goes on
    with pytest.raises(MisuseError, match="consumed once: ask for a new one"):
        iter(stream)
    closed = chat(client, "#[ok]")
    closed.close()
    with pytest.raises(MisuseError, match="over"):
        list(closed)
    assert next(closed, None) is None
    assert trace_of(closed).ended["outcome"] == "cancelled"
    awaited = reprieve.wrap(SDKS["anthropic async"].make(drill), QUICK)

    async def main() -> None:
        stream = await claude(awaited, "#[ok]")
        async for _item in stream:
            break
        assert [item async for item in stream]
        assert trace_of(stream).ended["outcome"] == "success"
        with pytest.raises(MisuseError, match="consumed once"):
            [item async for item in stream]
        closed = await claude(awaited, "#[ok]")
        await closed.close()
        with pytest.raises(MisuseError, match="over"):
            [item async for item in closed]
        assert await anext(closed, None) is None

    run(main())


def test_a_stream_is_charged_to_its_run(drill: Drill) -> None:
    lines: list[str] = []
    spent = Run(tokens=100)
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK, sink=lines.append, run=spent)
    assert "".join(map(said, chat(client, "#[500,ok]"))) == ANSWER
    assert json.loads(lines[-1])["output_tokens"] == 9
    assert spent.report()["tokens"]["used"] == 17


def test_the_managers_of_openai(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK)
    with client.chat.completions.stream(model=MODEL, messages=messages("#[500,sse-cut=0,ok]")) as stream:
        stream.until_done()
        assert stream.get_final_completion().choices[0].message.content == ANSWER
    with client.responses.stream(model=MODEL, input="#[503,sse-error=0,ok]") as answers:
        assert "".join(event.delta for event in answers if event.type == "response.output_text.delta") == ANSWER
        assert answers.get_final_response().output_text == ANSWER
    assert drill.played() == ["500", "sse-cut=0", "ok", "503", "sse-error=0", "ok"]


def test_the_managers_of_openai_async(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai async"].make(drill), QUICK)

    async def main() -> None:
        async with client.chat.completions.stream(model=MODEL, messages=messages("#[500,sse-cut=0,ok]")) as stream:
            completion = await stream.get_final_completion()
            assert completion.choices[0].message.content == ANSWER

    run(main())
    assert drill.played() == ["500", "sse-cut=0", "ok"]


def test_the_managers_of_anthropic(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["anthropic"].make(drill), QUICK)
    with client.messages.stream(model=MODEL, max_tokens=9, messages=messages("#[529,sse-error=0,ok]")) as stream:
        assert "".join(stream.text_stream) == ANSWER
        assert stream.get_final_message().usage.output_tokens == 9
    with client.beta.messages.stream(model=MODEL, max_tokens=9, messages=messages("#[529,sse-void,ok]")) as beta:
        assert beta.get_final_text() == ANSWER
    awaited = reprieve.wrap(SDKS["anthropic async"].make(drill), QUICK)

    async def main() -> None:
        async with awaited.messages.stream(
            model=MODEL, max_tokens=9, messages=messages("#[500,sse-cut=0,ok]")
        ) as stream:
            assert "".join([text async for text in stream.text_stream]) == ANSWER

    run(main())
    assert len(drill.visits()) == 9


def test_an_end_without_a_finish_frame_is_no_answer(drill: Drill) -> None:
    """Without a policy it passes for a whole one."""
    made = SDKS["openai"].make(drill)
    assert "".join(map(said, chat(made, "#[sse-eof=3]"))) == "The gateway answers"
    client = reprieve.wrap(made, QUICK)
    with pytest.raises(StreamError, match="without its finish frame"):
        "".join(map(said, chat(client, "#[sse-eof=3]")))


def test_starting_again_is_announced(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), {**QUICK, "stream": {"mode": "restart"}})
    items = list(chat(client, "#[sse-cut=2,ok]"))
    at = next(i for i, item in enumerate(items) if isinstance(item, Discard))
    assert "".join(map(said, items[at + 1 :])) == ANSWER
    assert items[at].count == at


def test_modes_that_a_client_cannot_have_are_refused(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), {**QUICK, "stream": {"mode": "resume"}})
    with pytest.raises(ConfigError, match=r"stream.mode: \"resume\".*policy.stream\(function\)"):
        chat(client, "hello")
    other = reprieve.wrap(SDKS["genai"].make(drill), {**QUICK, "stream": {"mode": "restart"}})
    with pytest.raises(ConfigError, match=r"stream.mode: \"restart\""):
        list(gemini(other, "hello"))
    assert drill.visits() == []


def test_raw_streams_run_under_the_policy_until_they_are_open(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK)
    raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=messages("#[500,ok]"), stream=True)
    assert "".join(map(said, raw.parse())) == ANSWER
    assert drill.played() == ["500", "ok"]


def test_first_items_do_not_wait_for_the_rest(drill: Drill) -> None:
    client = reprieve.wrap(SDKS["openai"].make(drill), QUICK)
    stream = chat(client, "#[sse-stall=1]")
    assert any(said(item) for item in (next(stream), next(stream)))
    stream.close()
