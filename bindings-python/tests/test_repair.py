"""`repair`: one more attempt for each kind of failure, with a changed request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from failing import Script, Status, at_once, still
from requesting import BAD, GOOD, Play, Reply, mend, on_asyncio, play, reasons

from reprieve import CallCancelled, Failure, Policy, Run, current_attempt
from reprieve.testing import VirtualClock

__all__ = ["play"]


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
        on_asyncio(at_once().bind(repair={"auth_failed": refresh}), function, model="m")
        assert function.calls[1][1] == {"model": "awaited"}

    def test_the_deadline_cuts_a_coroutine_that_repairs(self) -> None:
        cut: list[str] = []

        async def forever(*_: Any) -> None:
            try:
                await asyncio.sleep(30)
            finally:
                cut.append("cut")

        result = on_asyncio(
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
