"""Requests that change where they are no single call's: in loops and streams, among threads; and what is refused."""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from typing import Any

import pytest
from failing import Script, Status, at_once
from requesting import mend

from reprieve import BadOutput, ConfigError, Failure, Policy


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
