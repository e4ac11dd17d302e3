"""The driver of coroutines: the same loop, under asyncio and trio.

An attempt that takes longer than its timeout is cancelled and awaited until it has unwound; a late value is a success.
A cancellation from outside is never retried.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native, _on_asyncio
from ._clock import clock
from ._current import CURRENT, Attempt, Facts, current_attempt
from ._race import hedges, race
from ._request import Broken
from ._session import Session
from ._starting import Started

if TYPE_CHECKING:
    from ._native import Action
    from ._options import Caller


class TimedOut(Exception):
    """The attempt was cancelled at its timeout, and has unwound."""


class Abandoned(Exception):
    """The attempt was cancelled because its call was, and has unwound."""


def backend() -> Any:
    """The module that knows how to wait here: asyncio's or trio's."""
    if _on_asyncio.in_task():
        return _on_asyncio
    if "trio" in sys.modules:
        from . import _on_trio

        if _on_trio.in_task():
            return _on_trio
    raise RuntimeError("reprieve drives coroutines in tasks of asyncio and trio; this is none")


class Answered(NamedTuple):
    """A plain function's attempt has answered a coroutine, which is yet to run."""

    action: Action
    coroutine: Coroutine[Any, Any, Any]


async def run(
    owner: Caller,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    started: Started | None = None,
) -> Any:
    """Awaits the function until the machine says it is enough; `started` is a first attempt that has failed."""
    session = Session(owner, started=started)
    try:
        return await go_on(session, function, args, kwargs, started)
    finally:
        del session, started


async def adopt(
    owner: Caller,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    coroutine: Coroutine[Any, Any, Any],
) -> Any:
    """Goes on with a plain function that has answered this coroutine when it was called first."""
    session = Session(owner, kwargs)
    answered = Answered(session.begin(), coroutine)
    return await go_on(session, function, args, kwargs or {}, answered=answered)


async def go_on(
    session: Session,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    first: Started | None = None,
    answered: Answered | None = None,
) -> Any:
    """The rest of a call, to its value or exception."""
    try:
        return session.finish(await drive(session, function, args, kwargs, first, answered))
    finally:
        session.close()
        del session, first


async def drive(
    session: Session,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    first: Started | None = None,
    answered: Answered | None = None,
) -> Action:
    """The loop. Answers the action that ended the call."""
    try:
        loop = backend()
        if answered is None:
            session.request.kwargs = kwargs
        action = answered.action if answered else _first(session, first) if first else session.begin()
        del first
        while True:
            if action.kind == "attempt" and hedges(action, session, loop):
                coroutine, answered = answered, None
                try:
                    action = await race(session, action, function, args, coroutine and _answer(coroutine))
                finally:
                    if coroutine is not None:  # its attempt may have ended before it ran
                        coroutine.coroutine.close()
                    del coroutine
            elif action.kind == "attempt":
                attempt = session.attempt(action)
                awaited = session.function(function, attempt.target) if answered is None else _answer(answered)
                whole, answered = session.asked(awaited, prepared=answered is not None), None
                try:
                    value = await loop.attempt(session, whole, args, session.request.kwargs, attempt)
                except TimedOut:
                    action = session.timed_out()
                except Abandoned:
                    action = session.abandoned()
                except Broken as broken:
                    action = session.broken(broken)
                except Exception as error:
                    if loop.cancelled(attempt):
                        raise
                    action = session.failed(error)
                else:
                    action = session.succeeded(value)
            elif action.kind in ("retry", "fallback"):
                action = await between(loop, session, action)
            else:
                return action
    except BaseException:
        session.stopped_outside()
        raise
    finally:
        if answered is not None:  # the call ended before its coroutine ran
            answered.coroutine.close()


def _answer(answered: Answered) -> Callable[..., Awaitable[Any]]:
    """The coroutine that is there already, as the function of its attempt."""
    coroutine = answered.coroutine
    return lambda *_args, **_kwargs: coroutine


def _first(session: Session, first: Started) -> Action:
    return session.timed_out() if isinstance(first.error, TimedOut) else session.failed(first.error)


async def between(loop: Any, session: Session, action: Action) -> Action:
    """Between two attempts: repairs the request where that is to be done, and sleeps."""
    if action.reason == "repair":
        repair, failure = session.request.repair_async, session.repaired()
        try:  # in the time that is left; what cancels the call cuts it
            await loop.attempt(session, repair, (failure,), {}, session.between())
        except (TimedOut, Abandoned):
            return session.begin()
        except Broken as broken:
            return session.broken(broken)
        finally:
            del failure
    await wait(loop, session, action.after or 0.0)
    return session.begin()


async def wait(loop: Any, session: Session, seconds: float) -> None:
    """Sleeps, until the wait is over or something wakes it."""
    if seconds > 0 and clock().virtual:
        clock().sleep(seconds)
        seconds = 0.0
    await loop.wait(session, seconds)


def wrap(owner: Caller, function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The coroutine function under its policy. On asyncio the first attempt is made with one object, a context variable
    and a place among the deadlines of its loop; what else a call needs is made when it fails."""
    if not owner._options.plain or owner._native.guarded or owner._native.hedged:

        async def call_with_options(*args: Any, **kwargs: Any) -> Any:
            return await run(owner, function, args, kwargs)

        return call_with_options
    first = Facts.of_first(owner)
    timeout_ns = first.timeout_ns
    current, set_current, reset_current = CURRENT.get, CURRENT.set, CURRENT.reset
    fast_now, running_loop, current_task = _native.fast_now, _on_asyncio.running_loop, _on_asyncio.current_task
    cancelling, cancelled, undo = _on_asyncio.cancelling, _on_asyncio.cancelled, _on_asyncio.undo
    deadlines = _on_asyncio.NOWHERE

    async def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal deadlines
        loop = running_loop()
        if loop is None or (current() is not None and current_attempt() is not None):
            return await run(owner, function, args, kwargs)
        began = fast_now()
        task = current_task(loop)
        if began == 0 or task is None:  # a virtual clock, or inside of an attempt of a plain function; or of a guest
            return await run(owner, function, args, kwargs)
        here = deadlines
        if here.loop() is not loop:
            here = deadlines = _on_asyncio.deadlines_of(loop)
        attempt = here.active[task] = Attempt(first, began)
        if cancelling is not None and (before := cancelling(task)):
            attempt.cancelling = before
        if began + timeout_ns < here.armed_for:
            here.arm(began + timeout_ns)
        token = set_current(attempt)
        error: Exception
        try:
            return await function(*args, **kwargs)
        except Exception as raised:
            if cancelled(attempt):
                raise
            error = raised
        except asyncio.CancelledError:
            if attempt.cut is None or undo(attempt, task) is None:
                raise
            error = TimedOut()
        finally:
            attempt.ended = True
            del here.active[task]
            if attempt.cut is not None:
                undo(attempt, task)
            del task  # what the task raises leads to this frame
            reset_current(token)
        started = Started(began, error, attempt.drawn)
        try:
            return await run(owner, function, args, kwargs, started)
        finally:
            del error, started

    return call
