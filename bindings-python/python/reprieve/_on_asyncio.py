"""Attempts and waits under asyncio: a timer that cancels the task, and a future that can be woken.

Written against the loop itself, so that Python 3.10, which has no `asyncio.timeout`, behaves the same.
"""

from __future__ import annotations

import asyncio
import math
import sys
import weakref
from asyncio import events
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from . import _native
from ._clock import LOOK

if TYPE_CHECKING:
    from ._current import Attempt
    from ._session import Session
    from ._stream_session import StreamAttempt

running_loop = events._get_running_loop
#: The task of a running loop. Before Python 3.12 `asyncio.current_task` is a slow way to look into this table.
current_task: Callable[[Any], Any] = asyncio.current_task
if sys.version_info < (3, 12):
    current_task = cast("Any", asyncio.tasks)._current_tasks.get
#: How often a task has been cancelled and not taken that back; Python 3.10 does not count.
cancelling: Callable[[Any], int] | None = getattr(asyncio.Task, "cancelling", None)


def in_task() -> bool:
    """Whether this is a task of asyncio's; a trio that is a guest of its loop runs in none."""
    return running_loop() is not None and asyncio.current_task() is not None


class Deadlines:
    """The deadlines of a loop's first attempts. An attempt joins under its task, and one timer is armed for the
    earliest deadline: most attempts are over long before it, and never touch a timer."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self.loop: Callable[[], asyncio.AbstractEventLoop | None] = weakref.ref(loop) if loop else lambda: None
        self.active: dict[Any, Attempt] = {}
        #: When the timer will look, in nanoseconds on the native clock.
        self.armed_for: float = math.inf
        self._timer: asyncio.TimerHandle | None = None

    def arm(self, moment: float) -> None:
        """Looks at the deadlines at this moment, instead of at a later one."""
        loop = self.loop()
        if self._timer is not None:
            self._timer.cancel()
        if loop is not None:
            self.armed_for = moment
            # Rounded up: a timer that is early would only have to be armed again.
            self._timer = loop.call_later(max(0.0, (moment - _native.now()) / 1e9) + 1e-6, self._look)

    def _look(self) -> None:
        now = _native.now()
        self._timer, self.armed_for = None, math.inf
        for task, attempt in self.active.items():
            if attempt.ends_by <= now:
                cut(attempt, task)
        if waiting := [attempt.ends_by for attempt in self.active.values() if attempt.cut is None]:
            self.arm(min(waiting))


#: The deadlines of no loop.
NOWHERE = Deadlines(None)
_all: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Deadlines] = weakref.WeakKeyDictionary()


def deadlines_of(loop: asyncio.AbstractEventLoop) -> Deadlines:
    """The deadlines of this loop."""
    if (found := _all.get(loop)) is None:
        found = _all[loop] = Deadlines(loop)
    return found


def cut(attempt: Attempt, task: asyncio.Task[Any], why: str = "timeout") -> None:
    """Cancels the attempt's task, once; one that is over, whose task has gone on to other things, is left alone. Only
    from the loop, so that it is the attempt that the cancellation meets."""
    if attempt.cut is None and not attempt.ended and not task.done():
        attempt.cut = why
        task.cancel()


def undo(attempt: Attempt, task: Any) -> str | None:
    """Takes a cut back: why it was made, or `None` when somebody else has cancelled the task as well."""
    why, attempt.cut = attempt.cut, None
    return why if cancelling is None or task.uncancel() <= attempt.cancelling else None


def cancelled(attempt: Attempt) -> bool:
    """Whether somebody else has cancelled the attempt's task, whatever the function has made of that."""
    ours = attempt.cancelling + (attempt.cut is not None)
    return cancelling is not None and cancelling(current_task(running_loop())) > ours


def _end_of(why: str) -> Exception:
    """What an attempt that was cut for this ends with."""
    from ._aio import Abandoned, TimedOut

    return TimedOut() if why == "timeout" else Abandoned()


async def attempt(
    session: Session,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    made: Attempt,
) -> Any:
    """An attempt that its timeout, its event, its handle and its run can cut."""
    loop = events.get_running_loop()
    task: Any = current_task(loop)
    made.cancelling = 0 if cancelling is None else cancelling(task)
    timer = loop.call_later(made.timeout, cut, made, task)

    def woken() -> None:
        if session.cancelled():
            cut(made, task, "cancel")

    stop = None if session.deaf else watch(session, woken)
    try:
        return await function(*args, **kwargs)
    except asyncio.CancelledError:
        why = undo(made, task) if made.cut else None
        if why is None:
            raise
        raise _end_of(why) from None
    finally:
        timer.cancel()
        if stop is not None:
            stop()
        if made.cut:
            undo(made, task)
        task = None  # what the task raises leads to this frame


class Watch:
    """What can cut the attempt of a stream while its source is waited for: its timers, its event, handle and run. One
    timer is armed, for the soonest of them; most items come long before that, and never touch it."""

    def __init__(self, session: Session, made: StreamAttempt) -> None:
        #: What the attempt had when a timer cut it.
        self.words = ""
        self._session, self._attempt = session, made
        self._loop = events.get_running_loop()
        self._task: Any = None
        self._timer: asyncio.TimerHandle | None = None
        self._armed = True
        self._deaf = session.deaf
        self._stop = None if self._deaf else watch(session, self._woken)
        made.cancelling = 0 if cancelling is None else cancelling(current_task(self._loop))

    @property
    def needed(self) -> bool:
        """Something may cut the attempt from now on. Asked once its first content is there."""
        if self._timer is not None:  # armed for what is past
            self._timer.cancel()
            self._timer = None
        self._armed = self._attempt.timers.armed
        return self._armed or not self._deaf

    def __enter__(self) -> None:
        attempt = self._attempt
        if not self._deaf and self._session.cancelled():
            raise _end_of("cancel")
        attempt.timers.ask()
        # A cut here would meet what the task awaits next, whatever that is, where the source answers at once.
        if self._timer is None and self._armed and self._overdue():
            raise _end_of("timeout")
        task = self._task = current_task(self._loop)
        if cancelling is not None:
            attempt.cancelling = cancelling(task)

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        task, self._task = self._task, None
        if self._attempt.cut is None:
            return
        why = undo(self._attempt, task)
        if kind is asyncio.CancelledError and why is not None:
            raise _end_of(why) from None

    def close(self) -> None:
        """Nothing of the attempt is waited for any more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._stop is not None:
            self._stop()

    def _look(self) -> None:
        self._timer = None
        # In the consumer's turn nothing is looked at: who asks next looks again.
        if self._task is not None and self._overdue():
            cut(self._attempt, self._task)

    def _overdue(self) -> bool:
        """Whether a timer has run out; else arms one for the soonest."""
        due, now = self._attempt.timers.due, _native.now()
        if due.moment <= now:
            self.words = due.words
            return True
        if due.words:
            # Rounded up: a timer that is early would only have to be armed again.
            self._timer = self._loop.call_later((due.moment - now) / 1e9 + 1e-6, self._look)
        return False

    def _woken(self) -> None:
        if self._task is not None and self._session.cancelled():
            cut(self._attempt, self._task, "cancel")


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
    stop = watch(session, end)
    try:
        await over
    finally:
        timer.cancel()
        stop()


def watch(session: Session, wake: Callable[[], object]) -> Callable[[], None]:
    """Calls `wake` when something wakes the session, from whatever thread, until the answer is called."""

    loop = events.get_running_loop()
    look: asyncio.Handle | None = None

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

    session.wakers.add(woken)
    if session.options.cancel is not None or session.cancelled():
        look = loop.call_soon(glance)

    def stop() -> None:
        session.wakers.discard(woken)
        if look is not None:
            look.cancel()

    return stop
