"""`check`, `prepare` and `repair`: answers that are none, and requests that change between attempts."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import jumping
import pydantic
import pytest
import trio
from failing import Script, Status, at_once, still

from reprieve import (
    BadOutput,
    Bound,
    CallCancelled,
    ConfigError,
    Failure,
    Policy,
    Result,
    RetryExhausted,
    Run,
    current_attempt,
    trace_of,
)
from reprieve.testing import VirtualClock

Play = Callable[..., Result[Any]]


def _plainly(bound: Bound, function: Script, **request: Any) -> Result[Any]:
    return bound.execute(function, **request)


def _on_asyncio(bound: Bound, function: Script, **request: Any) -> Result[Any]:
    return asyncio.run(bound.execute(function.coroutine(), **request))


def _on_trio(bound: Bound, function: Script, **request: Any) -> Result[Any]:
    async def main() -> Result[Any]:
        return await bound.execute(function.coroutine(), **request)

    return trio.run(main)


def _answered(bound: Bound, function: Script, **request: Any) -> Result[Any]:
    """A plain function that answers a coroutine, as methods of async clients do."""
    play = function.coroutine()

    async def main() -> Result[Any]:
        made: Any = bound.execute(lambda **request: play(**request), **request)
        return await made if inspect.isawaitable(made) else made  # it ended before the function was called

    return asyncio.run(main())


@pytest.fixture(params=[_plainly, _on_asyncio, _on_trio, _answered], ids=lambda play: play.__name__.strip("_"))
def play(request: pytest.FixtureRequest) -> Play:
    """A call under every driver."""
    return request.param  # type: ignore[no-any-return]


def reasons(result: Result[Any]) -> list[Any]:
    return [receipt["reason"] for receipt in result.trace.receipts]


def kinds(result: Result[Any]) -> list[Any]:
    return [receipt["kind"] for receipt in result.trace.receipts]


class Reply(pydantic.BaseModel):
    """What an answer has to be."""

    city: str
    degrees: int


GOOD, BAD = '{"city": "Paris", "degrees": 21}', '{"city": "Paris", "degrees": "warm"}'


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

        result = _on_asyncio(at_once().bind(check=check), Script("bad", "good"))
        assert (result.value, result.attempts) == ("good", 2)

    def test_a_check_takes_of_its_attempt_s_time(self) -> None:
        async def check(_: str) -> None:
            await asyncio.sleep(30)

        result = _on_asyncio(at_once(attempt_timeout=0.01, max_attempts=1).bind(check=check), Script("slow to judge"))
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


def mend(to: str = "mended") -> Callable[[dict[str, Any], Failure], dict[str, Any]]:
    return lambda request, failure: {**request, "model": to}


class TestRepair:
    def test_one_more_attempt_with_a_changed_request(self, play: Play, clock: VirtualClock) -> None:
        seen: list[Any] = []

        def refresh(request: dict[str, Any], failure: Failure) -> dict[str, Any]:
            seen.append((dict(request), failure.kind, failure.error, failure.value))
            return {**request, "token": "new"}

        error = Status(401)
        function = Script(error, "fine")
        result = play(still(max_attempts=1).bind(repair={"auth_failed": refresh}), function, token="old", model="m")
        assert (result.value, clock.sleeps, reasons(result)) == ("fine", [], ["repair", None])
        assert [kwargs for _, kwargs in function.calls] == [
            {"token": "old", "model": "m"},
            {"token": "new", "model": "m"},
        ]
        assert seen == [({"token": "old", "model": "m"}, "auth_failed", error, None)]

    def test_once_for_each_kind(self, play: Play) -> None:
        function = Script(Status(401), Status(404), Status(401))
        bound = at_once(fallback_on=[]).bind(repair={"auth_failed": mend("a"), "not_found": mend("b")})
        result = play(bound, function, model="m")
        assert (function.count, result.stop_reason) == (3, "not_retryable")
        assert [kwargs["model"] for _, kwargs in function.calls] == ["m", "a", "b"]

    def test_what_was_repaired_stays(self, play: Play) -> None:
        function = Script(Status(401), Status(503), "fine")
        result = play(at_once(max_attempts=2).bind(repair={"auth_failed": mend()}), function, model="m")
        assert (result.value, reasons(result)) == ("fine", ["repair", "overloaded", None])
        assert [kwargs["model"] for _, kwargs in function.calls] == ["m", "mended", "mended"]

    def test_a_copy_may_be_changed_in_place(self, play: Play) -> None:
        def change(request: dict[str, Any], _: Failure) -> None:
            request["model"] = "changed"
            del request["seed"]

        given = {"model": "m", "seed": 1}
        function = Script(Status(401), "fine")
        play(at_once().bind(repair={"auth_failed": change}), function, **given)
        assert function.calls[1][1] == {"model": "changed"}
        assert given == {"model": "m", "seed": 1}

    def test_the_validation_error_is_fed_back(self, play: Play) -> None:
        def feed_back(request: dict[str, Any], failure: Failure) -> dict[str, Any]:
            said = {"role": "assistant", "content": failure.value}
            wrong = {"role": "user", "content": f"That is not valid: {failure.message}"}
            return {**request, "messages": [*request["messages"], said, wrong]}

        function = Script(BAD, GOOD)
        bound = at_once(max_attempts=1).bind(check=Reply.model_validate_json, repair={"schema_invalid": feed_back})
        result = play(bound, function, messages=[{"role": "user", "content": "How warm is Paris?"}])
        assert result.value == GOOD
        _, said, wrong = function.calls[1][1]["messages"]
        assert said["content"] == BAD
        assert "degrees" in wrong["content"]
        assert "unable to parse string as an integer" in wrong["content"]

    def test_it_benches_nothing_and_charges_no_budget(self, play: Play) -> None:
        policy = at_once(
            cooldown={}, retry_budget={"capacity": 1, "retry_cost": 1}, breaker={"consecutive_failures": 1}
        )
        result = play(policy.bind(repair={"auth_failed": mend()}), Script(Status(401), "fine"))
        assert (result.ok, policy.guards.describe()) == (True, Policy().guards.describe())

    def test_a_run_counts_it(self, play: Play) -> None:
        run = Run(attempts=1)
        calls: list[str] = []
        bound = at_once().bind(run=run, repair={"auth_failed": lambda *_: calls.append("repair")})
        result = play(bound, Script(Status(401)))
        assert (result.stop_reason, calls) == ("run_budget_exhausted", [])

    def test_events(self, play: Play) -> None:
        events: list[dict[str, Any]] = []
        play(at_once().bind(repair={"auth_failed": mend()}, on_event=events.append), Script(Status(401), "fine"))
        assert [event["event"] for event in events] == [
            "attempt_started",
            "attempt_failed",
            "will_retry",
            "attempt_started",
            "succeeded",
        ]
        assert (events[2]["reason"], events[2]["delay_ms"]) == ("repair", 0)

    def test_time_that_a_repair_takes_counts(self, play: Play, clock: VirtualClock) -> None:
        def slow(*_: Any) -> None:
            clock.advance(10)

        function = Script(error := Status(401))
        result = play(still(total_timeout=10).bind(repair={"auth_failed": slow}), function)
        assert (result.stop_reason, result.error, function.count) == ("deadline_exceeded", error, 1)

    def test_no_attempt_with_a_repair_left_is_the_last(self, play: Play) -> None:
        seen: list[Any] = []

        class Looks(Script):
            def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
                seen.append(getattr(current_attempt(), "is_last", None))
                return super().__call__(*args, **kwargs)

        play(at_once(max_attempts=1).bind(repair={"auth_failed": mend()}), Looks(Status(401), "fine"))
        assert seen == [False, True]

    def test_nor_is_it_on_the_happy_path(self) -> None:
        @at_once(max_attempts=1).bind(repair={"auth_failed": mend()})
        def ask() -> bool | None:
            attempt = current_attempt()
            return attempt and attempt.is_last

        assert ask() is False

    def test_the_happy_path_s_failure_is_repaired(self) -> None:
        function = Script(Status(401), "fine")
        bound = at_once(max_attempts=1).bind(repair={"auth_failed": mend()})
        assert bound.call(function, model="m") == "fine"
        assert [kwargs["model"] for _, kwargs in function.calls] == ["m", "mended"]
        again = Script(Status(401), "fine")
        assert asyncio.run(bound.call(again.coroutine(), model="m")) == "fine"

    def test_a_coroutine_may_repair_coroutines(self) -> None:
        async def refresh(request: dict[str, Any], _: Failure) -> dict[str, Any]:
            await asyncio.sleep(0)
            return {**request, "model": "awaited"}

        function = Script(Status(401), "fine")
        _on_asyncio(at_once().bind(repair={"auth_failed": refresh}), function, model="m")
        assert function.calls[1][1] == {"model": "awaited"}

    def test_the_deadline_cuts_a_coroutine_that_repairs(self) -> None:
        cut: list[str] = []

        async def forever(*_: Any) -> None:
            try:
                await asyncio.sleep(30)
            finally:
                cut.append("cut")

        result = _on_asyncio(
            at_once(total_timeout=0.05).bind(repair={"auth_failed": forever}), Script(error := Status(401))
        )
        assert (result.stop_reason, result.error, cut) == ("deadline_exceeded", error, ["cut"])

    def test_a_cancelled_call_cuts_it_too(self) -> None:
        async def main() -> None:
            begun = asyncio.Event()

            async def forever(*_: Any) -> None:
                begun.set()
                await asyncio.sleep(30)

            handle = at_once().bind(repair={"auth_failed": forever}).start(Script(Status(401)).coroutine())
            await begun.wait()
            handle.cancel("enough")
            with pytest.raises(CallCancelled, match="enough"):
                await handle

        asyncio.run(main())

    def test_a_cancelled_task_is_cancelled(self) -> None:
        async def main() -> None:
            begun = asyncio.Event()

            async def forever(*_: Any) -> None:
                begun.set()
                await asyncio.sleep(30)

            task = asyncio.create_task(
                at_once().bind(repair={"auth_failed": forever}).call(Script(Status(401)).coroutine())
            )
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())

    @pytest.mark.filterwarnings("error")
    def test_a_plain_call_has_plain_repairs(self) -> None:
        async def refresh(*_: Any) -> None: ...

        with pytest.raises(TypeError, match=r"repair\['auth_failed'\] is the coroutine function .*refresh") as raised:
            at_once().bind(repair={"auth_failed": refresh}).call(Script(error := Status(401)))
        assert raised.value.__context__ is error


class TestRaising:
    """What `prepare` and `repair` raise ends the call, with the attempt's own error behind it."""

    class Boom(Exception):
        pass

    def test_a_repair_that_raises(self, play: Play) -> None:
        boom, error = self.Boom("no token to be had"), Status(401)

        def refresh(*_: Any) -> None:
            raise boom

        function = Script(error)
        result = play(at_once().bind(repair={"auth_failed": refresh}), function)
        assert (result.error, function.count, boom.__context__) == (boom, 1, error)
        trace = trace_of(boom)
        assert (trace and trace.lines, result.stop_reason) == (result.trace.lines, "cancelled")
        assert "repair['auth_failed'] raised this" in "".join(boom.__notes__)
        assert (result.failure and result.failure.kind, reasons(result)) == ("auth_failed", ["repair"])

    def test_a_prepare_that_raises(self, play: Play) -> None:
        boom = self.Boom("no such model")

        def prepare(*_: Any) -> None:
            raise boom

        function = Script("fine")
        result = play(at_once().bind(prepare=prepare), function)
        assert (result.error, function.count, boom.__context__) == (boom, 0, None)
        assert "prepare raised this" in "".join(boom.__notes__)
        assert result.trace.ended is not None

    def test_a_prepare_that_raises_later(self, play: Play) -> None:
        boom, error = self.Boom("no such model"), Status(503)

        def prepare(request: dict[str, Any], _: str) -> None:
            if request["model"] in seen:
                raise boom
            seen.append(request["model"])

        seen: list[str] = []
        result = play(at_once().bind(prepare=prepare), Script(error), model="m")
        assert (result.error, boom.__context__) == (boom, error)

    def test_a_repair_that_raises_the_error_itself(self, play: Play) -> None:
        error = Status(401)

        def give_up(_: dict[str, Any], failure: Failure) -> None:
            assert failure.error is not None
            raise failure.error

        result = play(at_once().bind(repair={"auth_failed": give_up}), Script(error))
        assert (result.error, error.__context__) == (error, None)

    def test_what_calls_see(self) -> None:
        def refresh(*_: Any) -> None:
            raise self.Boom

        bound = at_once().bind(repair={"auth_failed": refresh})
        with pytest.raises(self.Boom) as raised:
            bound.call(Script(Status(401)))
        shown = "".join(traceback.format_exception(raised.value))
        assert "status 401" in shown
        assert "Broken" not in shown
        with pytest.raises(self.Boom):
            asyncio.run(bound.call(Script(Status(401)).coroutine()))
        with pytest.raises(RetryExhausted):
            bound.bind(on_give_up="wrapped").call(Script(Status(401)))

    def test_what_is_no_exception_leaves_at_once(self) -> None:
        def refresh(*_: Any) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            at_once().bind(repair={"auth_failed": refresh}).call(Script(Status(401)))

    @pytest.mark.parametrize("answer", ["text", 3, [("model", "m")]])
    def test_what_is_no_request(self, play: Play, answer: object) -> None:
        result = play(at_once().bind(repair={"auth_failed": lambda *_: answer}), Script(Status(401)))
        assert isinstance(result.error, TypeError)
        assert "repair['auth_failed'] answered" in str(result.error)
        assert "None" in str(result.error)


class TestPrepare:
    def test_each_attempt_is_prepared_anew(self, play: Play) -> None:
        models = {"a": "gpt", "b": "claude"}
        function = Script(Status(503), Status(503), "fine")
        bound = at_once(targets=[{"id": "a", "max_attempts": 2}, {"id": "b"}]).bind(
            prepare=lambda request, target: {**request, "model": models[target], "n": request.get("n", 0) + 1}
        )
        result = play(bound, function, question="?")
        assert result.value == "fine"
        assert [kwargs for _, kwargs in function.calls] == [
            {"question": "?", "model": "gpt", "n": 1},
            {"question": "?", "model": "gpt", "n": 1},
            {"question": "?", "model": "claude", "n": 1},
        ]

    def test_what_was_repaired_is_prepared(self, play: Play) -> None:
        def prepare(request: dict[str, Any], target: str) -> None:
            request["target"] = target

        function = Script(Status(401), "fine")
        play(at_once().bind(prepare=prepare, repair={"auth_failed": mend()}), function, model="m")
        assert [kwargs for _, kwargs in function.calls] == [
            {"model": "m", "target": "primary"},
            {"model": "mended", "target": "primary"},
        ]

    def test_a_repair_sees_what_was_not_prepared(self, play: Play) -> None:
        seen: list[dict[str, Any]] = []
        bound = at_once().bind(
            prepare=lambda request, _: {**request, "prepared": True},
            repair={"auth_failed": lambda r, _: seen.append(r)},
        )
        play(bound, Script(Status(401), "fine"), model="m")
        assert seen == [{"model": "m"}]

    def test_a_coroutine_may_prepare_coroutines(self) -> None:
        async def prepare(request: dict[str, Any], target: str) -> dict[str, Any]:
            await asyncio.sleep(0)
            return {**request, "model": target}

        function = Script("fine")
        _on_asyncio(at_once().bind(prepare=prepare), function)
        assert function.calls == [((), {"model": "primary"})]

    def test_decorated_functions_keep_their_positional_arguments(self) -> None:
        @at_once().bind(prepare=lambda request, target: {**request, "model": target})
        def ask(question: str, *, model: str = "") -> tuple[str, str]:
            return question, model

        assert ask("?") == ("?", "primary")

    def test_handles(self) -> None:
        handle = at_once().bind(prepare=lambda request, target: {"target": target}).start(dict, a=1)
        assert handle.result(60) == {"target": "primary"}


class TestAttempts:
    def test_a_request_goes_through_a_loop(self) -> None:
        seen: list[dict[str, Any]] = []
        bound = at_once(max_attempts=1).bind(
            repair={"auth_failed": mend()}, prepare=lambda request, target: {**request, "target": target}
        )
        for attempt in bound.attempts(model="m"):
            with attempt:
                seen.append(attempt.request)
                if len(seen) == 1:
                    raise Status(401)
        assert seen == [{"model": "m", "target": "primary"}, {"model": "mended", "target": "primary"}]

    def test_an_async_one_too(self) -> None:
        async def refresh(request: dict[str, Any], _: Failure) -> dict[str, Any]:
            return {**request, "token": "new"}

        async def main() -> list[dict[str, Any]]:
            seen: list[dict[str, Any]] = []
            async for attempt in at_once().bind(repair={"auth_failed": refresh}).attempts(token="old"):
                with attempt:
                    seen.append(attempt.request)
                    if len(seen) == 1:
                        raise Status(401)
            return seen

        assert asyncio.run(main()) == [{"token": "old"}, {"token": "new"}]

    def test_what_raises_there(self) -> None:
        def refresh(*_: Any) -> None:
            raise LookupError("no token")

        def repaired() -> None:
            for attempt in at_once().bind(repair={"auth_failed": refresh}).attempts():
                with attempt:
                    raise Status(401)

        def prepared() -> None:
            for attempt in at_once().bind(prepare=refresh).attempts():
                with attempt:
                    pytest.fail("there is no attempt")

        with pytest.raises(LookupError) as raised:
            repaired()
        assert isinstance(raised.value.__context__, Status)
        with pytest.raises(LookupError):
            prepared()

    def test_a_loop_has_no_answer_to_check(self) -> None:
        with pytest.raises(ConfigError, match="check"):
            at_once().bind(check=bool).attempts()


class TestStreams:
    def test_a_stream_s_request_is_repaired_and_prepared(self) -> None:
        seen: list[dict[str, Any]] = []

        def words(**request: Any) -> Any:
            seen.append(request)
            if len(seen) == 1:
                raise Status(401)
            yield "a"

        bound = at_once(max_attempts=1).bind(
            repair={"auth_failed": mend()}, prepare=lambda request, target: {**request, "target": target}
        )
        assert [*bound.stream(words, model="m")] == ["a"]
        assert [request["model"] for request in seen] == ["m", "mended"]
        assert seen[1]["target"] == "primary"

    def test_an_async_one_s_too(self) -> None:
        seen: list[dict[str, Any]] = []

        async def words(**request: Any) -> Any:
            seen.append(request)
            if len(seen) == 1:
                raise Status(401)
            yield "a"

        async def refresh(request: dict[str, Any], _: Failure) -> dict[str, Any]:
            return {**request, "token": "new"}

        async def main() -> list[Any]:
            return [item async for item in at_once().bind(repair={"auth_failed": refresh}).stream(words, token="old")]

        assert (asyncio.run(main()), seen[1]) == (["a"], {"token": "new"})

    def test_check_sees_the_whole_answer(self) -> None:
        answers = [["a", "b"], ["a", "b", "c"]]

        def words() -> Any:
            yield from answers.pop(0)

        bound = at_once(stream={"mode": "buffered"}).bind(check=lambda items: len(items) == 3)
        assert [*bound.stream(words)] == ["a", "b", "c"]

    def test_what_was_delivered_stays_delivered(self) -> None:
        got: list[str] = []
        with pytest.raises(BadOutput) as raised:
            got.extend(at_once().bind(check=lambda _: False).stream(iter, "ab"))
        assert (raised.value.stop_reason, raised.value.value) == ("already_delivered", ["a", "b"])

    def test_what_raises_ends_the_stream(self) -> None:
        def refresh(*_: Any) -> None:
            raise LookupError

        def words() -> Any:
            raise Status(401)
            yield

        with pytest.raises(LookupError):
            list(at_once().bind(repair={"auth_failed": refresh}).stream(words))
        with pytest.raises(LookupError):
            list(at_once().bind(prepare=refresh).stream(words))


class TestBinding:
    @pytest.mark.parametrize(
        ("options", "field", "allowed"),
        [
            ({"repair": {"rubbish": print}}, "repair.rubbish", "auth_failed"),
            ({"repair": {"cancelled": print}}, "repair.cancelled", "auth_failed"),
            ({"repair": {"auth_failed": "no function"}}, "repair", "a mapping from kind"),
            ({"repair": print}, "repair", "a mapping from kind"),
            ({"check": "no function"}, "check", "a function"),
            ({"prepare": {}}, "prepare", "a function"),
            ({"client": "openai"}, "client", "no such option"),
        ],
        ids=str,
    )
    def test_what_is_refused(self, options: Any, field: str, allowed: str) -> None:
        with pytest.raises(ConfigError) as refused:
            Policy().bind(**options)
        assert (refused.value.field, allowed in refused.value.allowed) == (field, True)

    def test_none_takes_one_back(self) -> None:
        bound = Policy().bind(check=bool, prepare=mend(), repair={"auth_failed": mend()})  # type: ignore[arg-type]
        assert bound.bind(check=None, prepare=None, repair=None)._options == Policy().bind()._options

    def test_a_mapping_that_changes_later_changes_nothing(self) -> None:
        repair: dict[Any, Any] = {"auth_failed": mend()}
        bound = at_once().bind(repair=repair)
        repair.clear()
        assert bound.call(Script(Status(401), "fine")) == "fine"

    def test_threads_share_a_bound_policy(self) -> None:
        bound = at_once().bind(repair={"auth_failed": mend("x")}, check=bool)
        seen: list[Any] = []

        def one(i: int) -> None:
            function = Script(Status(401), i + 1)
            seen.append((bound.call(function, model=i), [k["model"] for _, k in function.calls]))

        threads = [threading.Thread(target=one, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(seen) == [(i + 1, [i, "x"]) for i in range(8)]

    def test_nothing_of_a_repair_is_left(self, no_gc: None) -> None:
        gone: list[weakref.ref[Status]] = []

        def ask(**request: str) -> str:
            if not gone:
                try:
                    raise Status(401)
                except Status as error:
                    gone.append(weakref.ref(error))
                    raise
            return request["model"]

        bound = at_once(max_attempts=1).bind(repair={"auth_failed": mend()}, check=bool)
        assert bound.call(ask, model="m") == "mended"
        assert gone[0]() is None

    def test_signatures(self) -> None:
        assert "request" in str(inspect.signature(Policy().attempts))
