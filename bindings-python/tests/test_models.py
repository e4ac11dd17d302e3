"""Every framework for models at the gateway, with the same questions. What is counted is what arrived there."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import frameworks
import pytest
from at_gateway import ANSWER, NEVER, OFTEN, Drill, cut_then, in_the_end
from failing import at_once

from reprieve import Failure, Policy, classify, trace_of


@pytest.fixture(params=frameworks.ASKS)
def ask(request: pytest.FixtureRequest) -> frameworks.Ask:
    return frameworks.ASKS[request.param]


@pytest.fixture(params=frameworks.STREAMS)
def stream(request: pytest.FixtureRequest) -> frameworks.Stream:
    return frameworks.STREAMS[request.param]


class Lines(list[str]):
    """A sink."""

    @property
    def receipts(self) -> list[dict[str, Any]]:
        return [record for line in self if "record" not in (record := json.loads(line))]

    @property
    def kinds(self) -> list[str | None]:
        return [receipt["kind"] for receipt in self.receipts]


@pytest.fixture
def lines() -> Lines:
    return Lines()


class TestAnswers:
    def test_an_answer_takes_one_request(self, ask: frameworks.Ask, drill: Drill, lines: Lines) -> None:
        assert ask(drill, "Hello", at_once().bind(sink=lines.append), 1) == ANSWER
        assert drill.played() == ["ok"]
        [receipt] = lines.receipts
        assert (receipt["input_tokens"], receipt["output_tokens"]) == expected_tokens(ask)

    def test_what_fails_is_tried_again(self, ask: frameworks.Ask, drill: Drill, lines: Lines) -> None:
        assert ask(drill, "#[500,503,ok]", at_once().bind(sink=lines.append), 1) == ANSWER
        assert drill.played() == ["500", "503", "ok"]
        assert lines.kinds == ["server_error", "overloaded", None]

    def test_a_reset_connection_is_tried_again(self, ask: frameworks.Ask, drill: Drill) -> None:
        assert ask(drill, "#[reset,ok]", at_once(), 1) == ANSWER
        assert drill.played() == ["reset", "ok"]

    def test_retry_after_is_honoured(self, ask: frameworks.Ask, drill: Drill, lines: Lines) -> None:
        assert ask(drill, "#[retry-after=0.2]", at_once().bind(sink=lines.append), 1) == ANSWER
        first, second = (visit["at_ms"] for visit in drill.visits())
        assert second - first >= 200
        assert lines.receipts[0]["retry_after_ms"] == 200

    def test_no_client_retries_beside_the_policy(self, ask: frameworks.Ask, drill: Drill) -> None:
        with pytest.raises(Exception, match="The server had an error") as caught:
            ask(drill, "#[500]", at_once(max_attempts=2), 1)
        assert drill.played() == ["500", "500"]
        assert {visit["x-stainless-retry-count"] for visit in drill.visits()} <= {"0", None}
        trace = trace_of(caught.value)
        assert trace is not None
        assert [receipt["attempt"] for receipt in trace.receipts] == [1, 2]

    def test_a_wrong_key_is_not_tried_again(self, ask: frameworks.Ask, drill: Drill) -> None:
        with pytest.raises(Exception, match="Incorrect API key") as caught:
            ask(drill, "#[401]", at_once(), 1)
        assert drill.played() == ["401"]
        assert classify(caught.value).kind == "auth_failed"
        assert not type(caught.value).__module__.startswith("reprieve")

    def test_the_next_model_is_asked_when_one_has_failed(self, ask: frameworks.Ask, drill: Drill, lines: Lines) -> None:
        policy = at_once(max_attempts=2).bind(sink=lines.append)
        assert ask(drill, "#[500,500,503,ok]", policy, 2) == ANSWER
        assert drill.played() == ["500", "500", "503", "ok"]
        assert [receipt["target"] for receipt in lines.receipts] == ["primary", "primary", "backup", "backup"]

    def test_an_attempt_has_its_timeout(self, ask: frameworks.Ask, drill: Drill, lines: Lines) -> None:
        policy = at_once(attempt_timeout=0.4, max_attempts=OFTEN).bind(sink=lines.append)
        assert ask(drill, f"#[{NEVER},ok]", policy, 1) == ANSWER
        assert cut_then(drill.played(), "ok")
        assert (set(lines.kinds[:-1]), lines.kinds[-1]) == ({"timeout"}, None)

    def test_a_request_can_be_repaired(self, ask: frameworks.Ask, drill: Drill) -> None:
        seen: list[str] = []

        def shorten(request: dict[str, Any], failure: Failure) -> None:
            seen.append(f"{failure.kind}: {next(name for name in REQUESTS if name in request)}")

        policy = at_once(max_attempts=1).bind(repair={"context_length_exceeded": shorten})
        assert ask(drill, "#[context,ok]", policy, 1) == ANSWER
        assert drill.played() == ["context", "ok"]
        assert len(seen) == 1

    def test_an_answer_can_be_checked(self, ask: frameworks.Ask, drill: Drill) -> None:
        answers: list[object] = []

        def check(answer: object) -> bool:
            answers.append(answer)
            return len(answers) > 1

        assert ask(drill, "Hello", at_once().bind(check=check), 1) == ANSWER
        assert len(answers) == len(drill.played()) == 2

    def test_the_records_say_what_was_switched_off(self, ask: frameworks.Ask, drill: Drill, lines: Lines) -> None:
        ask(drill, "Hello", at_once().bind(sink=lines.append), 1)
        assert json.loads(lines[-1])["client"].endswith("-> 0")


#: What a request of each framework is known by.
REQUESTS = ("messages", "input", "request")


class TestStreams:
    def test_pieces_arrive_one_by_one(self, stream: frameworks.Stream, drill: Drill) -> None:
        pieces: list[str] = []
        stream(drill, "Hello", at_once(), pieces.append)
        assert "".join(pieces) == ANSWER
        assert len([piece for piece in pieces if piece]) == 9
        assert drill.played() == ["ok"]

    @pytest.mark.parametrize("fault", ["500", "sse-cut=0", "sse-error=0"])
    def test_what_fails_before_the_first_content_is_tried_again(
        self, stream: frameworks.Stream, drill: Drill, fault: str
    ) -> None:
        pieces: list[str] = []
        stream(drill, f"#[{fault},ok]", at_once(), pieces.append)
        assert "".join(pieces) == ANSWER
        assert drill.played() == [fault, "ok"]

    @pytest.mark.parametrize("fault", ["sse-cut=2", "sse-error=2"])
    def test_after_the_first_content_nothing_is_repeated(
        self, stream: frameworks.Stream, drill: Drill, lines: Lines, fault: str
    ) -> None:
        pieces: list[str] = []
        with pytest.raises(Exception) as caught:  # noqa: PT011  # each framework has its own, of its client's
            stream(drill, f"#[{fault},ok]", at_once().bind(sink=lines.append), pieces.append)
        assert "".join(pieces) == "The gateway"
        assert drill.played() == [fault]
        [receipt] = lines.receipts
        assert (receipt["decision"], receipt["reason"]) == ("stop", "already_delivered")
        assert receipt["delivered"] >= 2
        assert trace_of(caught.value) is not None

    def test_a_first_item_that_does_not_come_is_given_up(self, stream: frameworks.Stream, drill: Drill) -> None:
        policy = at_once(attempt_timeout=0.5, max_attempts=OFTEN)

        def ask() -> tuple[str, list[str]]:
            asked, pieces = Drill(drill.origin), list[str]()
            # A client that cannot be interrupted has the time for each read, and may cut an answer in its midst.
            with contextlib.suppress(Exception):
                stream(asked, f"#[{NEVER},ok]", policy, pieces.append)
            return "".join(pieces), asked.played()

        text, played = in_the_end(ask, lambda seen: seen[0] == ANSWER)
        assert text == ANSWER
        assert cut_then(played, "ok")


def expected_tokens(ask: frameworks.Ask) -> tuple[int | None, int | None]:
    """What parses the answer drops what it used."""
    return (None, None) if ask is frameworks.langchain_pipe else (8, 9)


def test_a_policy_names_as_many_targets_as_there_are_models(drill: Drill) -> None:
    policy = Policy(targets=[{"id": "a"}, {"id": "b"}, {"id": "c"}])
    with pytest.raises(
        ValueError, match=r"models: 2 is not allowed; it takes one for each target of the policy, a, b, c"
    ):
        frameworks.resilient_chat(drill, policy, 2)
    with pytest.raises(ValueError, match="trace_id: a value for all calls of a model is not allowed"):
        frameworks.resilient_chat(drill, policy.bind(trace_id="a" * 32), 3)
    assert frameworks.for_litellm.resilient({"max_attempts": 2}).targets == ["primary"]
    with pytest.raises(ValueError, match="policy: 7 is not allowed"):
        frameworks.resilient_chat(drill, 7)  # type: ignore[arg-type]
