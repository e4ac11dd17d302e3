"""The driver of plain functions: one loop. What to do is the machine's to say.

A plain function cannot be interrupted: its late success is a success, and the deadline bounds what is started. One
that answers a coroutine, as the methods of async clients do, is gone on with by the driver of coroutines.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _aio
from ._aio import Answered
from ._clock import LOOK, clock
from ._request import Broken
from ._session import Session
from ._starting import Started

if TYPE_CHECKING:
    from ._native import Action
    from ._options import Caller


def run(
    owner: Caller,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    started: tuple[int, Exception, Any] | None = None,
) -> Any:
    """Calls the function until the machine says it is enough; `started` is a first attempt that has failed."""
    first = Started(*started) if started else None
    session = Session(owner, started=first)
    end: Action | Answered | None = None
    try:
        end = drive(session, function, args, kwargs or {}, first)
        if isinstance(end, Answered):
            return _aio.go_on(session, function, args, kwargs or {}, answered=end)
        return session.finish(end)
    finally:
        if not isinstance(end, Answered):
            session.close()
        del session, first, started, end


def drive(
    session: Session,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    first: Started | None = None,
) -> Action | Answered:
    """The loop. Answers the action that ended the call, or the coroutine that the function has answered instead of a
    value."""
    try:
        session.request.kwargs = kwargs
        action = session.failed(first.error) if first else session.begin()
        del first
        while True:
            if action.kind == "attempt":
                attempt = session.attempt(action)
                try:
                    value = session.function(function, attempt.target)(
                        *args, **session.request.prepared(attempt.target)
                    )
                    if inspect.iscoroutine(value):
                        session.hide()
                        return Answered(action, value)
                    session.check(value)
                except Broken as broken:
                    action = session.broken(broken)
                except Exception as error:
                    action = session.failed(error)
                else:
                    action = session.succeeded(value)
            elif action.kind in ("retry", "fallback"):
                action = go_on(session, action)
            else:
                return action
    except BaseException:
        session.stopped_outside()
        raise


def go_on(session: Session, action: Action) -> Action:
    """Between two attempts: repairs the request where that is to be done, and sleeps."""
    if action.reason == "repair":
        try:
            session.request.repair(session.repaired())
        except Broken as broken:
            return session.broken(broken)
    wait(session, action.after or 0.0)
    return session.begin()


def wait(session: Session, seconds: float) -> None:
    """Sleeps, until the wait is over or something wakes it: the call's event, its handle or its run."""
    if seconds <= 0:
        return
    if session.deaf or clock().virtual:
        clock().sleep(seconds)
        return
    woken = threading.Event()
    session.wakers.add(woken.set)
    cancel = session.options.cancel
    try:
        if cancel is None:
            if not session.cancelled():
                woken.wait(seconds)
        elif session.run is None and not session.handled and isinstance(cancel, threading.Event):
            cancel.wait(seconds)
        else:  # several things to wait for at once
            ends = clock().now() + int(seconds * 1e9)
            while not session.cancelled() and (left := ends - clock().now()) > 0:
                if woken.wait(min(LOOK, left / 1e9)):
                    break
    finally:
        session.wakers.discard(woken.set)
