"""What a call writes: the sink's lines, the listener's events, ids, masking."""

from __future__ import annotations

import io
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from failing import Script, Status, at_once, fails, still

import reprieve
from reprieve import Policy, current_attempt, testing

Clock = testing.VirtualClock


def records(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


# --- sinks ---


def test_a_sink_gets_a_line_for_each_attempt_and_the_end(clock: Clock) -> None:
    lines: list[str] = []
    bound = still().bind(sink=lines.append, scene="greet", prompt_version="v7", trace_id="a" * 32)
    bound.call(fails(1))
    first, second, end = records(lines)
    assert all("\n" not in line for line in lines)
    for record in (first, second, end):
        assert (record["scene"], record["prompt_version"], record["trace_id"]) == ("greet", "v7", "a" * 32)
    assert (first["attempt"], first["decision"], first["kind"], first["delay_ms"]) == (1, "retry", "timeout", 500)
    assert (second["attempt"], second["decision"], second["retry_count"]) == (2, "done", 1)
    assert (end["record"], end["attempts"], end["elapsed_ms"]) == ("call_ended", 2, 500)


def test_a_line_comes_when_it_is_decided(clock: Clock) -> None:
    lines: list[str] = []
    seen: list[int] = []

    def count() -> None:
        seen.append(len(lines))
        raise TimeoutError

    still().bind(sink=lines.append).execute(count)
    assert seen == [0, 1, 2]


def test_a_file_is_a_sink(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with path.open("a", encoding="utf-8") as file:
        at_once().bind(sink=file, scene="中文").call(fails(2))
    assert [r.get("attempt") for r in records(path.read_text(encoding="utf-8").splitlines())] == [1, 2, 3, None]


def test_a_closed_file_costs_the_record_and_not_the_call() -> None:
    file, before = io.StringIO(), reprieve.faults().get("sink", 0)
    file.close()
    assert at_once().bind(sink=file).call(fails(1)) == "ok"
    assert reprieve.faults()["sink"] == before + 3


def test_usage_and_tokens_are_recorded(clock: Clock) -> None:
    lines: list[str] = []
    answer = types.SimpleNamespace(usage=types.SimpleNamespace(input_tokens=5, output_tokens=2))
    still().bind(sink=lines.append).call(lambda: answer)
    receipt, end = records(lines)
    assert (receipt["input_tokens"], receipt["output_tokens"], end["input_tokens"]) == (5, 2, 5)
    # Embeddings say how much they have read, and that this is all.
    still().bind(sink=lines.append).call(lambda: {"usage": {"prompt_tokens": 3, "total_tokens": 3}})
    still().bind(sink=lines.append).call(lambda: {"usage": {"prompt_tokens": 3, "total_tokens": 5}})
    assert [receipt["output_tokens"] for receipt in records(lines)[2::2]] == [0, None]


# --- events ---


def test_events_come_in_order_with_one_schema(clock: Clock) -> None:
    events: list[dict[str, Any]] = []
    policy = still(max_attempts=2, targets=[{"id": "primary"}, {"id": "backup", "max_attempts": 1}])
    policy.bind(on_event=events.append).execute(fails(9))
    names = [event["event"] for event in events]
    assert names == [
        "attempt_started",
        "attempt_failed",
        "will_retry",
        "attempt_started",
        "attempt_failed",
        "fallback",
        "attempt_started",
        "attempt_failed",
        "gave_up",
    ]
    assert len({tuple(event) for event in events}) == 1, "every event has the same fields"
    assert [event["at_ms"] for event in events] == [0, 0, 0, 500, 500, 500, 500, 500, 500]
    assert events[2]["delay_ms"] == 500
    assert events[-1]["reason"] == "attempts_exhausted"
    assert len({event["trace_id"] for event in events}) == 1


def test_a_success_is_an_event(clock: Clock) -> None:
    events: list[dict[str, Any]] = []
    still().bind(on_event=events.append).call(fails(0))
    assert [event["event"] for event in events] == ["attempt_started", "succeeded"]


def test_an_event_is_heard_before_what_it_announces(clock: Clock) -> None:
    heard: list[Any] = []
    still().bind(on_event=lambda e: heard.append((e["event"], len(clock.sleeps)))).call(fails(1))
    assert heard == [
        ("attempt_started", 0),
        ("attempt_failed", 0),
        ("will_retry", 0),
        ("attempt_started", 1),
        ("succeeded", 1),
    ]


# --- ids ---


def test_ids_are_drawn_afresh_for_each_call() -> None:
    ids = {at_once().execute(fails(0)).trace.trace_id for _ in range(50)}
    assert len(ids) == 50
    assert all(len(i) == 32 and set(i) <= set("0123456789abcdef") for i in ids)


def test_the_trace_id_is_that_of_the_current_span(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = pytest.importorskip("opentelemetry.trace")
    span = trace.NonRecordingSpan(trace.SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=trace.TraceFlags(1)))
    with trace.use_span(span):
        assert at_once().execute(fails(0)).trace.trace_id == f"{0xABC:032x}"
        assert at_once().call(lambda: current_attempt().trace_id) == f"{0xABC:032x}"  # type: ignore[union-attr]
        assert at_once().bind(trace_id="b" * 32).execute(fails(0)).trace.trace_id == "b" * 32
    assert at_once().execute(fails(0)).trace.trace_id != f"{0xABC:032x}"


def test_a_broken_tracer_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError

    monkeypatch.setitem(sys.modules, "opentelemetry.trace", types.SimpleNamespace(get_current_span=broken))  # type: ignore[arg-type]
    assert len(at_once().execute(fails(0)).trace.trace_id) == 32


def test_inner_records_name_the_outer_trace(clock: Clock) -> None:
    lines: list[str] = []

    def outer() -> str:
        at_once().bind(sink=lines.append).call(fails(1))
        attempt = current_attempt()
        assert attempt is not None
        return attempt.trace_id

    trace_id = at_once().call(outer)
    assert {r["outer_trace_id"] for r in records(lines)[:2]} == {trace_id}


# --- what is written ---


def test_personal_data_and_secrets_are_masked_unless_told_otherwise(clock: Clock) -> None:
    secret = ValueError("call 13812345678 with sk-abcdefghijklmnopqrstuvwxyz123456")
    for unmask, phone in ((None, "138****5678"), (["phones"], "13812345678")):
        result = still().bind(unmask=unmask).execute(Script(secret))
        message = result.trace.receipts[0]["message"]
        assert phone in message
        assert "abcdefghijklmnopqrstuvwxyz" not in message


def test_text_that_is_no_unicode_is_recorded_all_the_same(clock: Clock) -> None:
    lines: list[str] = []
    bound = still().bind(sink=lines.append, scene="\ud800scene", idempotency_key="\udfff")
    bound.execute(Script(ValueError("lone \ud83d surrogate")))
    receipt = records(lines)[0]
    assert receipt["scene"] == "\ufffdscene"
    assert receipt["message"] == "lone \ufffd surrogate"


def test_a_trace_is_a_timeline(clock: Clock) -> None:
    result = still(max_attempts=2, targets=[{"id": "primary"}, {"id": "backup"}]).execute(fails(9))
    text = str(result.trace)
    assert text.count("\n") == 5
    assert result.trace.trace_id in text
    assert "#1 primary" in text
    assert "timeout -> retry in 0.5 s" in text
    assert "end" in text
    assert "4 receipts" in repr(result.trace)


def test_headers_that_are_no_utf8() -> None:
    for headers in ({b"retry-after": b"7", b"x-\xff": b"\xff"}, [(b"Retry-After", b"7"), ("x", "\udcff")]):
        assert reprieve.classify(status=429, headers=headers).retry_after == 7.0
    failure = reprieve.classify(Status(429, retry_after="7", x_odd="\udcff\ud800"))
    assert failure.retry_after == 7.0


def test_huge_bodies_are_bounded() -> None:
    import time

    huge = "x" * 100_000_000
    began = time.monotonic()

    class Failed(Exception):
        status_code = 500
        body = huge

    assert reprieve.classify(Failed()).kind == "server_error"
    assert at_once().execute(Script(Failed(huge))).attempts == 3
    assert time.monotonic() - began < 60
    assert reprieve.classify(status=500, body=huge).kind == "server_error"


def test_a_result_whose_usage_is_hostile() -> None:
    class Answer:
        @property
        def usage(self) -> Any:
            raise RuntimeError

    result = Policy().execute(lambda: Answer())
    assert result.ok
    assert result.usage == {}
    assert Policy().execute(lambda: {"usage": {"prompt_tokens": 10**30}}).ok
