"""`prepare`: a request is adapted to its target; and what it, or a repair, raises ends the call."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

import pytest
from failing import Script, Status, at_once
from requesting import Play, mend, on_asyncio, play, reasons

from reprieve import Failure, RetryExhausted, trace_of

__all__ = ["play"]


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
        on_asyncio(at_once().bind(prepare=prepare), function)
        assert function.calls == [((), {"model": "primary"})]

    def test_decorated_functions_keep_their_positional_arguments(self) -> None:
        @at_once().bind(prepare=lambda request, target: {**request, "model": target})
        def ask(question: str, *, model: str = "") -> tuple[str, str]:
            return question, model

        assert ask("?") == ("?", "primary")

    def test_handles(self) -> None:
        handle = at_once().bind(prepare=lambda request, target: {"target": target}).start(dict, a=1)
        assert handle.result(60) == {"target": "primary"}


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
