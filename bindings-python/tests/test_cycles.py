"""Nothing is left behind: an exception that was handled frees its frames at once, without the cycle collector."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import weakref
from typing import Any

import pytest
from failing import at_once

from reprieve import Policy, RetryExhausted, current_attempt, testing

pytestmark = pytest.mark.usefixtures("no_gc")


class Local:
    """Something in a frame."""


class Failed(TimeoutError):
    """A builtin exception takes no weak references."""


def failing(live: list[weakref.ref[Any]], same: list[Exception] | None = None) -> Any:
    def fail() -> None:
        local = Local()
        error = same[0] if same else Failed()
        live.extend([weakref.ref(local), weakref.ref(error)] if not same else [weakref.ref(local)])
        try:
            raise error
        finally:
            del error

    return fail


def coroutine(fail: Any) -> Any:
    async def afail() -> None:
        await asyncio.sleep(0)
        fail()

    return afail


@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize(
    "options", [{}, {"idempotency_key": "k"}, {"on_give_up": "wrapped"}, {"cancel": asyncio.Event()}]
)
@pytest.mark.parametrize("kind", ["plain", "async", "execute", "attempts", "handle", "task", "async handle"])
def test_a_call_that_gave_up_leaves_nothing(kind: str, options: dict[str, Any], attempts: int) -> None:
    live: list[weakref.ref[Any]] = []
    bound = at_once(max_attempts=attempts).bind(**options)
    fail = failing(live)

    def run() -> None:
        if kind == "plain":
            bound.call(fail)
        elif kind == "execute":
            bound.execute(fail)
        elif kind == "attempts":
            for attempt in bound.attempts():
                with attempt:
                    fail()
        elif kind == "handle":
            bound.start(fail).result(60)
        elif kind == "task":
            asyncio.run(beside())
        else:
            asyncio.run(in_task())

    async def beside() -> None:
        task = asyncio.create_task(bound.call(coroutine(fail)))
        await asyncio.wait([task])
        assert task.exception() is not None

    async def in_task() -> None:
        with contextlib.suppress(TimeoutError, RetryExhausted):
            await (bound.call(coroutine(fail)) if kind == "async" else bound.start(coroutine(fail)))

    try:
        run()
    except (TimeoutError, RetryExhausted) as error:
        del error
    assert len(live) == 2 * attempts
    for thread in threading.enumerate():
        if thread.name == "reprieve-call":
            thread.join(60)
    left = [ref() for ref in live if ref() is not None]
    assert not left, [gc.get_referrers(thing) for thing in left]


def test_a_call_that_succeeds_late_leaves_nothing() -> None:
    live: list[weakref.ref[Any]] = []
    fail = failing(live)

    def twice() -> str:
        attempt = current_attempt()
        assert attempt is not None
        if attempt.number < 3:
            fail()
        return "ok"

    assert at_once().call(twice) == "ok"
    assert not [ref() for ref in live if ref() is not None]


def test_a_cancelled_wait_leaves_nothing() -> None:
    live: list[weakref.ref[Any]] = []

    async def main() -> None:
        task = asyncio.create_task(Policy(backoff={"base": 30, "max": 30}).call(coroutine(failing(live))))  # type: ignore[arg-type]
        while not live:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    assert len(live) == 2
    assert not [ref() for ref in live if ref() is not None]


def test_a_timed_out_attempt_leaves_nothing() -> None:
    live: list[weakref.ref[Any]] = []

    async def slow() -> None:
        local = Local()
        live.append(weakref.ref(local))
        await asyncio.sleep(30)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await at_once(max_attempts=2, attempt_timeout=0.01).call(slow)

    asyncio.run(main())
    assert len(live) == 2
    assert not [ref() for ref in live if ref() is not None]


def test_a_decorated_closure_over_itself_is_collectable() -> None:
    def make() -> weakref.ref[Any]:
        local = Local()

        @at_once()
        def recursive(n: int) -> int:
            assert local
            return n and recursive(n - 1)

        assert recursive(2) == 0
        return weakref.ref(local)

    left = make()
    gc.collect()
    assert left() is None


def test_a_local_class_with_decorated_methods_is_collectable() -> None:
    def make() -> weakref.ref[Any]:
        class Shop:
            @at_once()
            def sell(self) -> type:
                return __class__  # type: ignore[name-defined]

        assert Shop().sell() is Shop
        return weakref.ref(Shop)

    left = make()
    gc.collect()
    assert left() is None


def test_a_call_s_arguments_and_value_are_let_go() -> None:
    for virtual in (False, True):
        argument, value = Local(), Local()
        refs = [weakref.ref(argument), weakref.ref(value)]
        box = [value]
        del value

        def give(thing: Any) -> Any:
            return box.pop()  # noqa: B023

        if virtual:
            with testing.virtual():
                at_once().call(give, argument)
        else:
            at_once().call(give, argument)
        del argument
        assert [ref() for ref in refs] == [None, None]
