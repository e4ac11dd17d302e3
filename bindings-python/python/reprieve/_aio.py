"""The driver of coroutines: the same loop, under asyncio and trio.

An attempt that takes longer than its timeout is cancelled and awaited until it has unwound; a late value is a success.
A cancellation from outside is never retried.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from . import _native, _on_asyncio
from ._clock import clock
from ._current import CURRENT, Attempt, current_attempt
from ._session import Session, Started

if TYPE_CHECKING:
    from ._native import Action
    from ._options import Caller


class TimedOut(Exception):
    """The attempt was cancelled at its timeout, and has unwound."""


class Abandoned(Exception):
    """The attempt was cancelled because its call was, and has unwound."""


def backend() -> Any:
    """The module that knows how to wait here: asyncio's or trio's."""
    if _on_asyncio.running():
        return _on_asyncio
    if "trio" in sys.modules:
        from . import _on_trio

        return _on_trio
    raise RuntimeError("reprieve drives coroutines under asyncio and trio; neither runs here")


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
        action = await drive(session, function, args, kwargs, started)
        if action.kind == "done":
            return session.value
        raise session.give_up(action)
    finally:
        session.close()
        del session, started


async def drive(
    session: Session,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    first: Started | None = None,
) -> Action:
    """The loop. Answers the action that ended the call."""
    loop = backend()
    try:
        action = _first(session, first) if first else session.begin()
        while True:
            if action.kind == "attempt":
                attempt = session.attempt(action)
                try:
                    value = await loop.attempt(session, session.function(function), args, kwargs, attempt.timeout)
                except TimedOut:
                    action = session.timed_out()
                except Abandoned:
                    action = session.abandoned()
                except Exception as error:
                    action = session.failed(error)
                else:
                    action = session.succeeded(value)
            elif action.kind in ("retry", "fallback"):
                await wait(loop, session, action.after or 0.0)
                action = session.begin()
            else:
                return action
    except BaseException:
        session.stopped_outside()
        raise


def _first(session: Session, first: Started) -> Action:
    return session.timed_out() if isinstance(first.error, TimedOut) else session.failed(first.error)


async def wait(loop: Any, session: Session, seconds: float) -> None:
    """Sleeps, until the wait is over or something wakes it."""
    if clock().virtual:
        clock().sleep(seconds)
        seconds = 0.0
    await loop.wait(session, seconds)


def wrap(owner: Caller, function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The coroutine function under its policy. The first attempt is made with nothing but a timer and a context
    variable; what else a call needs is made when it fails."""
    plain = owner._options.plain and not owner._native.guarded
    timeout_ns = owner._native.first_timeout_ns
    timeout = timeout_ns / 1e9
    target = owner._native.targets[0]
    connect_timeout = owner._native.connect_timeout
    is_last = owner._native.max_attempts_of_first == 1 and len(owner._native.targets) == 1
    now, set_current, reset_current = _native.now, CURRENT.set, CURRENT.reset
    attempt_on_asyncio, opened = _on_asyncio.bare_attempt, _native.open_attempts

    async def call(*args: Any, **kwargs: Any) -> Any:
        if not plain or clock().virtual or not _on_asyncio.running() or current_attempt() is not None:
            return await run(owner, function, args, kwargs)
        began = now()
        attempt = Attempt(1, target, timeout_ns, began + timeout_ns, is_last, None, connect_timeout)
        token = set_current(attempt)
        opened(1)
        try:
            return await attempt_on_asyncio(function, args, kwargs, timeout)
        except Exception as error:
            failed = Started(began, error, attempt.drawn)
        finally:
            attempt.ended = True
            opened(-1)
            reset_current(token)
        try:
            return await run(owner, function, args, kwargs, failed)
        finally:
            del failed

    return call
