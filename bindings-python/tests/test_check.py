"""`check`: an answer that is none is a failure like any other."""

from __future__ import annotations

import asyncio
import json
import pickle
import threading
from typing import Any

import jumping
import pydantic
import pytest
from failing import Script, Status, at_once
from requesting import BAD, GOOD, Play, Reply, kinds, mend, on_asyncio, play

from reprieve import BadOutput, Failure, Policy, RetryExhausted, current_attempt, trace_of

__all__ = ["play"]


class TestCheck:
    @pytest.mark.parametrize("answer", [None, True, 1, [], Reply(city="Paris", degrees=21)])
    def test_anything_but_a_refusal_is_fine(self, play: Play, answer: object) -> None:
        seen: list[Any] = []

        def check(value: Any) -> object:
            seen.append(value)
            return answer

        result = play(at_once().bind(check=check), Script("fine"))
        assert (result.ok, result.value, seen) == (True, "fine", ["fine"])

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [
            (False, "invalid_output"),
            ("truncated", "truncated"),
            (Failure.from_json('{"kind":"parse_error"}'), "parse_error"),
        ],
        ids=str,
    )
    def test_a_refusal_is_a_failure_and_keeps_the_answer(self, play: Play, answer: object, kind: str) -> None:
        result = play(at_once(max_attempts=2).bind(check=lambda _: answer), Script("bad"))
        assert not result.ok
        assert set(kinds(result)) == {kind}
        error = result.error
        assert isinstance(error, BadOutput)
        assert (error.value, error.failure and error.failure.kind) == ("bad", kind)
        assert (error.attempts, error.retries, error.stop_reason) == (
            result.attempts,
            result.attempts - 1,
            result.stop_reason,
        )
        assert (result.value, result.value_or("nothing")) == ("bad", "nothing")
        assert trace_of(error) is not None

    def test_a_refused_answer_is_tried_again(self, play: Play) -> None:
        function = Script("bad", "good")
        result = play(at_once().bind(check=lambda value: value == "good"), function)
        assert (result.value, function.count, kinds(result)) == ("good", 2, ["invalid_output", None])

    @pytest.mark.parametrize(
        ("text", "kind"), [(BAD, "schema_invalid"), ("{", "schema_invalid"), ("no", "schema_invalid")]
    )
    def test_what_pydantic_raises(self, play: Play, text: str, kind: str) -> None:
        result = play(at_once(max_attempts=2).bind(check=Reply.model_validate_json), Script(text))
        assert isinstance(result.error, pydantic.ValidationError)
        assert (kinds(result), result.value) == ([kind, kind], text)

    def test_what_json_raises(self, play: Play) -> None:
        result = play(at_once().bind(check=json.loads), Script("{", GOOD))
        assert (result.value, kinds(result)) == (GOOD, ["parse_error", None])

    def test_what_says_nothing_of_itself_is_about_the_answer(self, play: Play) -> None:
        def check(value: Any) -> None:
            assert "answer" in value, "there is no answer in it"

        result = play(at_once(max_attempts=2).bind(check=check), Script({}))
        assert isinstance(result.error, AssertionError)
        assert kinds(result) == ["invalid_output"] * 2

    def test_an_answer_of_none_is_one(self, play: Play) -> None:
        result = play(at_once(max_attempts=1).bind(check=lambda _: False), Script(None))
        assert isinstance(result.error, BadOutput)
        assert kinds(result) == ["invalid_output"]

    def test_the_value_of_an_earlier_attempt_is_not_the_last_one_s(self, play: Play) -> None:
        result = play(at_once(max_attempts=2).bind(check=lambda _: False), Script("bad", Status(503)))
        assert (result.value, type(result.error)) == (None, Status)

    def test_the_function_s_own_error_is_not_checked(self, play: Play) -> None:
        result = play(at_once().bind(check=pytest.fail), Script(ValueError()))
        assert (type(result.error), kinds(result)) == (ValueError, ["unknown"])

    def test_an_unknown_kind_ends_the_call(self, play: Play) -> None:
        function = Script("bad")
        result = play(at_once().bind(check=lambda _: "rubbish"), function)
        assert isinstance(result.error, TypeError)
        assert "'rubbish'" in str(result.error)
        assert "invalid_output" in str(result.error)
        assert function.count == 1

    def test_classify_has_no_word_on_what_check_says(self, play: Play) -> None:
        bound = at_once(max_attempts=1).bind(check=lambda _: "truncated", classify=lambda _: "timeout")
        assert kinds(play(bound, Script("bad"))) == ["truncated"]

    def test_classify_has_a_word_on_what_check_raises(self, play: Play) -> None:
        bound = at_once(max_attempts=1).bind(check=json.loads, classify=lambda _: "no_evidence")
        assert kinds(play(bound, Script("{"))) == ["no_evidence"]

    def test_a_refusal_crosses_processes_with_its_answer(self) -> None:
        for answer, kept in [({"city": "Paris"}, {"city": "Paris"}), (threading.Lock(), None)]:
            error = at_once(max_attempts=2).bind(check=lambda _: False).execute(lambda answer=answer: answer).error
            copy = pickle.loads(pickle.dumps(error))
            assert isinstance(copy, BadOutput)
            assert (copy.value, copy.attempts, str(copy)) == (kept, 2, str(error))

    def test_giving_up_wrapped(self) -> None:
        bound = at_once(max_attempts=1).bind(check=lambda _: False, on_give_up="wrapped")
        with pytest.raises(RetryExhausted) as given_up:
            bound.call(str, "bad")
        assert isinstance(given_up.value.__cause__, BadOutput)
        assert given_up.value.__cause__.value == "bad"

    def test_a_refused_answer_has_used_what_it_used(self, play: Play) -> None:
        answer = {"usage": {"prompt_tokens": 5, "completion_tokens": 7}}
        result = play(at_once(max_attempts=2).bind(check=lambda _: False), Script(answer))
        assert result.usage == {"input_tokens": 10, "output_tokens": 14}

    def test_unsafe_calls_are_not_repeated(self, play: Play) -> None:
        result = play(at_once(side_effects="unsafe").bind(check=lambda _: False), Script("bad"))
        assert (result.stop_reason, result.attempts) == ("unsafe_to_repeat", 1)

    def test_the_attempt_is_visible_to_check(self, play: Play) -> None:
        seen: list[Any] = []

        def check(_: Any) -> bool:
            attempt = current_attempt()
            seen.append(attempt and attempt.number)
            return len(seen) > 1

        play(at_once().bind(check=check), Script("bad"))
        assert seen == [1, 2]

    def test_a_coroutine_may_check_coroutines(self) -> None:
        async def check(value: str) -> bool:
            await asyncio.sleep(0)
            return value == "good"

        result = on_asyncio(at_once().bind(check=check), Script("bad", "good"))
        assert (result.value, result.attempts) == ("good", 2)

    def test_a_check_takes_of_its_attempt_s_time(self) -> None:
        async def check(_: str) -> None:
            await asyncio.sleep(30)

        result = on_asyncio(at_once(attempt_timeout=0.01, max_attempts=1).bind(check=check), Script("slow to judge"))
        assert (kinds(result), result.value) == (["timeout"], "slow to judge")

    def test_attempts_beside_each_other_are_told_apart(self) -> None:
        """While the answer of one is looked at, another one fails: that is no matter of `check`."""
        joined, judging, failing = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def check(value: str) -> bool:
            judging.set()
            await failing.wait()
            await asyncio.sleep(0.05)
            return value == "good"

        async def ask() -> str:
            attempt = current_attempt()
            if attempt is not None and attempt.number == 2:
                joined.set()
                await judging.wait()
                failing.set()
                raise KeyError("the second one")
            await joined.wait()
            return "good"

        policy = at_once(hedge={"after": 0.005})
        result = jumping.run(lambda: policy.bind(check=check).execute(ask))
        assert (result.value, kinds(result)) == ("good", ["unknown", None])

    def test_attempts_beside_each_other_are_prepared_and_repaired(self) -> None:
        seen: list[dict[str, Any]] = []
        joined = asyncio.Event()

        async def ask(**request: Any) -> str:
            seen.append(request)
            if len(seen) <= 2:
                if len(seen) == 2:
                    joined.set()
                await joined.wait()
                raise Status(401)
            return "fine"

        bound = at_once(hedge={"after": 0.005}, max_attempts=1).bind(
            prepare=lambda request, target: {**request, "target": target}, repair={"auth_failed": mend()}
        )
        result = jumping.run(lambda: bound.execute(ask, model="m"))
        assert (result.value, [request["model"] for request in seen]) == ("fine", ["m", "m", "mended"])
        assert {request["target"] for request in seen} == {"primary"}

    @pytest.mark.filterwarnings("error")
    def test_a_plain_call_has_a_plain_check(self) -> None:
        async def check(_: str) -> None: ...

        with pytest.raises(TypeError, match=r"check is the coroutine function .*check.*plain function") as raised:
            at_once().bind(check=check).call(str, "fine")
        assert trace_of(raised.value) is not None

    def test_calls_without_one_take_the_happy_path(self) -> None:
        assert Policy().bind(scene="x", repair={"auth_failed": lambda request, failure: None})._options.plain
        assert not Policy().bind(check=bool)._options.plain
