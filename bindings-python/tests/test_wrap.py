"""`wrap` on the real packages and the gateway: what a failure does, and what becomes of the client."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from at_gateway import ANSWER, NEVER, OFTEN, Drill, cut_then
from sdk_clients import MODEL, QUICK, SDKS, Sdk

import reprieve
from reprieve import ConfigError, Policy, Run, trace_of


@pytest.fixture(params=SDKS)
def sdk(request: pytest.FixtureRequest) -> Sdk:
    return SDKS[request.param]


# --- what a failure does ---------------------------------------------------------------------------------------------


def test_an_answer_comes_as_it_is(sdk: Sdk, drill: Drill) -> None:
    client = reprieve.wrap(sdk.make(drill), QUICK)
    assert sdk.asked(client, "hello") == ANSWER
    assert drill.played() == ["ok"]


def test_an_answer_has_its_trace_and_is_what_it_would_be_without(drill: Drill) -> None:
    plain = openai.OpenAI(base_url=f"{drill.origin}/v1", api_key="none", default_headers=drill.headers)
    client = reprieve.wrap(plain, QUICK)
    message: Any = {"role": "user", "content": "#[503x1,ok]"}
    answer = client.chat.completions.create(model="gpt-5", messages=[message])
    trace = trace_of(answer)
    assert trace is not None
    assert [receipt["decision"] for receipt in trace.receipts] == ["retry", "done"]
    other = plain.chat.completions.create(model="gpt-5", messages=[message])
    assert trace_of(other) is None
    assert answer.model_dump().keys() == other.model_dump().keys()
    assert "reprieve" not in repr(answer)


@pytest.mark.parametrize("failure", ["429", "500", "503", "reset"])
def test_what_is_retriable_is_tried_again(sdk: Sdk, drill: Drill, failure: str) -> None:
    client = reprieve.wrap(sdk.make(drill), QUICK)
    assert sdk.asked(client, f"#[{failure},{failure},ok]") == ANSWER
    assert drill.played() == [failure, failure, "ok"]


def test_a_failure_that_lasts_is_the_sdks_own_exception(sdk: Sdk, drill: Drill) -> None:
    client = reprieve.wrap(sdk.make(drill), QUICK)
    with pytest.raises(sdk.refused) as caught:
        sdk.asked(client, "#[500]")
    trace = trace_of(caught.value)
    assert trace is not None
    assert [receipt["kind"] for receipt in trace.receipts] == ["server_error"] * 3
    assert drill.played() == ["500"] * 3, "the client has sent what the trace has, and no more"


def test_a_wrong_key_is_asked_once(sdk: Sdk, drill: Drill) -> None:
    client = reprieve.wrap(sdk.make(drill), QUICK)
    with pytest.raises(sdk.refused) as caught:
        sdk.asked(client, "#[401]")
    trace = trace_of(caught.value)
    assert trace is not None
    assert trace.receipts[0]["kind"] == "auth_failed"
    assert drill.played() == ["401"]


def test_a_retry_after_is_waited_for(sdk: Sdk, drill: Drill) -> None:
    lines: list[str] = []
    client = reprieve.wrap(sdk.make(drill), QUICK, sink=lines.append)
    assert sdk.asked(client, "#[retry-after=0.2]") == ANSWER
    first, second = drill.visits()
    assert second["at_ms"] - first["at_ms"] >= 200
    assert json.loads(lines[0])["retry_after_ms"] == 200


def test_a_server_that_hangs_meets_the_attempts_timeout(sdk: Sdk, drill: Drill) -> None:
    client = reprieve.wrap(sdk.make(drill), {**QUICK, "max_attempts": OFTEN, "attempt_timeout": 0.2})
    assert sdk.asked(client, f"#[{NEVER},ok]") == ANSWER
    assert cut_then(drill.played(), "ok")
    client = reprieve.wrap(sdk.make(drill), {**QUICK, "max_attempts": 2, "attempt_timeout": 0.2})
    with pytest.raises(sdk.timed_out) as caught:
        sdk.asked(client, f"#[{NEVER}]")
    trace = trace_of(caught.value)
    assert trace is not None
    assert len(trace.receipts) == 2
    for receipt in trace.receipts:
        assert receipt["kind"] == "timeout"
        assert receipt["latency_ms"] >= 190


def test_side_effects_that_may_have_happened_are_not_repeated(sdk: Sdk, drill: Drill) -> None:
    client = reprieve.wrap(sdk.make(drill), {**QUICK, "side_effects": "unsafe"})
    with pytest.raises(sdk.refused) as caught:
        sdk.asked(client, "#[500,ok]")
    trace = trace_of(caught.value)
    assert trace is not None
    assert trace.receipts[0]["reason"] == "unsafe_to_repeat"
    assert sdk.asked(client, "#[429,ok]") == ANSWER, "a refusal has had no effect"
    assert drill.played() == ["500", "429", "ok"]


# --- the client ------------------------------------------------------------------------------------------------------


def test_the_types_are_kept_and_the_old_client_is_untouched(sdk: Sdk, drill: Drill) -> None:
    old = sdk.make(drill)
    before = dict(vars(old))
    client = reprieve.wrap(old, QUICK)
    assert isinstance(client, type(old))
    assert type(client).__name__ == type(old).__name__
    assert client is not old
    assert vars(old) == before
    with pytest.raises(sdk.refused):
        sdk.asked(old, "#[500]")
    assert len(drill.visits()) == sdk.alone, "the old one does what it did"
    with pytest.raises(sdk.refused):
        sdk.asked(client, "#[503]")
    assert len(drill.visits()) == sdk.alone + 3


def test_the_old_client_may_go_first(sdk: Sdk, drill: Drill) -> None:
    client = reprieve.wrap(sdk.make(drill), QUICK)
    assert sdk.asked(client, "#[500,ok]") == ANSWER


def test_the_new_client_may_go_first(sdk: Sdk, drill: Drill) -> None:
    old = sdk.make(drill)
    client = reprieve.wrap(old, QUICK)
    assert sdk.asked(client, "hello") == ANSWER
    del client
    assert sdk.asked(old, "hello") == ANSWER


def test_the_idempotency_key_is_the_same_for_all_attempts(sdk: Sdk, drill: Drill) -> None:
    client = reprieve.wrap(sdk.make(drill), QUICK, idempotency=True)
    assert sdk.asked(client, "#[500,500,ok]") == ANSWER
    assert sdk.asked(client, "hello") == ANSWER
    *call, other = [visit["idempotency-key"] for visit in drill.visits()]
    assert len(set(call)) == 1
    assert len(call[0]) == 32
    assert other not in call


def test_no_key_is_sent_unasked(sdk: Sdk, drill: Drill) -> None:
    sdk.asked(reprieve.wrap(sdk.make(drill), QUICK), "hello")
    assert drill.visits()[0]["idempotency-key"] is None


# --- records ---------------------------------------------------------------------------------------------------------


def test_usage_and_cost_are_in_the_records_and_the_run(sdk: Sdk, drill: Drill) -> None:
    lines: list[str] = []
    run = Run(tokens=1_000, cost=1.0)
    prices: Any = {MODEL: {"input": 100.0, "output": 1_000.0, "currency": "EUR"}}
    client = reprieve.wrap(sdk.make(drill), QUICK, prices=prices, run=run, sink=lines.append)
    assert sdk.asked(client, "one two #[500,ok]") == ANSWER
    ended = json.loads(lines[-1])
    assert (ended["input_tokens"], ended["output_tokens"]) == (10, 9)
    assert ended["cost"] == pytest.approx(10 * 100 / 1e6 + 9 * 1_000 / 1e6)
    assert ended["currency"] == "EUR"
    report = run.report()
    assert report["tokens"]["used"] == 19
    assert report["attempts"]["used"] == 2


def test_an_unknown_price_is_unknown_and_not_zero(sdk: Sdk, drill: Drill) -> None:
    lines: list[str] = []
    run = Run(cost=1.0)
    prices: Any = {"another-model": {"input": 1, "output": 1}}
    client = reprieve.wrap(sdk.make(drill), QUICK, prices=prices, run=run, sink=lines.append)
    sdk.asked(client, "hello")
    assert json.loads(lines[-1])["cost"] is None
    assert run.report()["unknown_usage"] == 1


def test_layers_add(sdk: Sdk, drill: Drill) -> None:
    """3 x 3 is 3: the outer policy does not repeat what an inner call has tried."""
    client = reprieve.wrap(sdk.make(drill), QUICK)
    with pytest.raises(sdk.refused):
        sdk.called(Policy(**QUICK), client, "#[500]")
    assert len(drill.visits()) == 3


def test_an_inner_call_ends_with_its_outer_attempt(sdk: Sdk, drill: Drill) -> None:
    """It stops by itself where the next wait would pass the outer attempt's end."""
    client = reprieve.wrap(sdk.make(drill), {"max_attempts": 9, "backoff": {"base": 300, "max": 300}})
    with pytest.raises(sdk.refused):
        sdk.called(Policy(max_attempts=1, total_timeout=120), client, "#[500]")
    assert drill.played() == ["500"]


# --- bad input -------------------------------------------------------------------------------------------------------


def test_wrapping_twice_is_refused(sdk: Sdk, drill: Drill) -> None:
    client = reprieve.wrap(sdk.make(drill), QUICK)
    with pytest.raises(ConfigError, match="not wrapped yet"):
        reprieve.wrap(client, "interactive")
