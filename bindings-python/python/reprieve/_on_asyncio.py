"""Attempts and waits under asyncio: a timer that cancels the task, and a future that can be woken.

Written against the loop itself, so that Python 3.10, which has no `asyncio.timeout`, behaves the same.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio import events
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._session import Session

#: How often an event that cannot call back is looked at, in seconds.
LOOK = 0.01


def running() -> bool:
    """Whether an asyncio loop runs on this thread."""
    return events._get_running_loop() is not None


class _Cut:
    """Cancels the current task, once, and tells its own cancellation from somebody else's."""

    __slots__ = ("before", "cause", "task")

    def __init__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("reprieve drives coroutines inside of tasks")
        self.task = task
        self.cause: str | None = None
        self.before = 0
        if sys.version_info >= (3, 11):
            self.before = task.cancelling()

    def __call__(self, cause: str) -> None:
        if self.cause is None and not self.task.done():
            self.cause = cause
            self.task.cancel()

    def undo(self) -> bool:
        """Takes the cancellation back. False when somebody else has cancelled the task as well."""
        if sys.version_info >= (3, 11):
            return self.task.uncancel() <= self.before
        return True


async def bare_attempt(
    function: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float
) -> Any:
    """An attempt that only its timeout can cut."""
    from ._aio import TimedOut

    cut = _Cut()
    timer = events.get_running_loop().call_later(timeout, cut, "timeout")
    try:
        value = await function(*args, **kwargs)
    except asyncio.CancelledError:
        if cut.cause is None or not cut.undo():
            raise
        raise TimedOut from None
    except BaseException:
        if cut.cause is not None:
            cut.undo()
        raise
    finally:
        timer.cancel()
    if cut.cause is not None:
        cut.undo()
    return value


async def attempt(
    session: Session,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    timeout: float,
) -> Any:
    """An attempt that its timeout, its event, its handle and its run can cut."""
    from ._aio import Abandoned, TimedOut

    if session.deaf:
        return await bare_attempt(function, args, kwargs, timeout)
    cut = _Cut()
    loop = events.get_running_loop()
    timer = loop.call_later(timeout, cut, "timeout")
    watch = _watch(loop, session, lambda: cut("cancel") if session.cancelled() else None)
    try:
        value = await function(*args, **kwargs)
    except asyncio.CancelledError:
        if cut.cause is None or not cut.undo():
            raise
        raise (TimedOut if cut.cause == "timeout" else Abandoned) from None
    except BaseException:
        if cut.cause is not None:
            cut.undo()
        raise
    finally:
        timer.cancel()
        watch()
    if cut.cause is not None:
        cut.undo()
    return value


async def wait(session: Session, seconds: float) -> None:
    """Sleeps; what wakes the session ends it."""
    if seconds <= 0 or session.deaf:
        await asyncio.sleep(seconds)
        return
    loop = events.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()

    def end() -> None:
        if not over.done():
            over.set_result(None)

    timer = loop.call_later(seconds, end)
    watch = _watch(loop, session, end)
    try:
        await over
    finally:
        timer.cancel()
        watch()


def _watch(loop: asyncio.AbstractEventLoop, session: Session, wake: Callable[[], object]) -> Callable[[], None]:
    """Calls `wake` when something wakes the session, from whatever thread, until the answer is called."""
    look: asyncio.TimerHandle | None = None

    def woken() -> None:
        try:
            loop.call_soon_threadsafe(wake)
        except RuntimeError:  # the loop is closed: nothing waits on it any more
            return

    def glance() -> None:
        nonlocal look
        if session.cancelled():
            wake()
        else:
            look = loop.call_later(LOOK, glance)

    session.waker = woken
    if session.options.cancel is not None:
        glance()
    elif session.cancelled():
        loop.call_soon(wake)

    def stop() -> None:
        session.waker = None
        if look is not None:
            look.cancel()

    return stop
