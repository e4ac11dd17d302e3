"""Attempts and waits under trio: one cancel scope each. Imported only where trio already is."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import trio

from . import _native
from ._clock import LOOK

if TYPE_CHECKING:
    from types import TracebackType

    from ._current import Attempt
    from ._session import Session
    from ._stream_session import StreamAttempt


def in_task() -> bool:
    """Whether this is a task of trio's."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return False
    return True


async def attempt(
    session: Session,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    made: Attempt,
) -> Any:
    """An attempt that its timeout, its event, its handle and its run can cut."""
    from ._aio import Abandoned, TimedOut

    with trio.move_on_after(made.timeout) as scope, _watched(session, lambda: _cut(session, made, scope)):
        return await function(*args, **kwargs)
    raise Abandoned if made.cut else TimedOut


def cancelled(made: Attempt) -> bool:
    """Whether somebody else has cancelled the attempt: trio says so again at the next checkpoint."""
    return False


class Watch:
    """What can cut the attempt of a stream while its source is waited for: its timers, its event, handle and run."""

    def __init__(self, session: Session, made: StreamAttempt) -> None:
        #: What the attempt had when a timer cut it.
        self.words = ""
        self._session, self._attempt = session, made
        self._scope: trio.CancelScope | None = None
        self._watching = _watched(session, self._woken)
        self._watching.__enter__()
        made.on_heard = self._heard

    @property
    def needed(self) -> bool:
        """Something may cut the attempt from now on. Asked once its first content is there."""
        return not self._session.deaf or self._attempt.timers.armed

    def __enter__(self) -> None:
        if self._session.cancelled():
            from ._aio import Abandoned

            raise Abandoned
        self._attempt.timers.ask()
        self._scope = trio.CancelScope(deadline=self._deadline())
        self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        scope, self._scope = self._scope, None
        assert scope is not None
        scope.__exit__(kind, error, traceback)
        if scope.cancelled_caught:
            from ._aio import Abandoned, TimedOut

            self.words = self._attempt.timers.due.words
            cut, self._attempt.cut = self._attempt.cut, None
            raise (Abandoned if cut else TimedOut) from None

    def close(self) -> None:
        """Nothing of the attempt is waited for any more."""
        self._watching.__exit__(None, None, None)

    def _deadline(self) -> float:
        due = self._attempt.timers.due
        return trio.current_time() + (due.moment - _native.now()) / 1e9 if due.words else math.inf

    def _heard(self) -> None:
        if self._scope is not None and self._attempt.cut is None:
            self._scope.deadline = self._deadline()

    def _woken(self) -> None:
        if self._scope is not None:
            _cut(self._session, self._attempt, self._scope)


async def wait(session: Session, seconds: float) -> None:
    """Sleeps; what wakes the session ends it."""
    with trio.move_on_after(max(0.0, seconds)) as scope, _watched(session, scope.cancel):
        await trio.sleep_forever()


def _cut(session: Session, made: Attempt, scope: trio.CancelScope) -> None:
    if session.cancelled() and not made.ended:
        made.cut = "cancel"
        scope.cancel()


@contextmanager
def _watched(session: Session, wake: Callable[[], object]) -> Generator[None]:
    """Calls `wake` when something wakes the session, from whatever thread."""
    if session.deaf:
        yield
        return
    token = trio.lowlevel.current_trio_token()

    def woken() -> None:
        try:
            token.run_sync_soon(wake)
        except trio.RunFinishedError:
            return

    session.wakers.add(woken)
    looking = trio.CancelScope()
    if session.options.cancel is not None:
        trio.lowlevel.spawn_system_task(_look, session, wake, looking)
    elif session.cancelled():
        wake()
    try:
        yield
    finally:
        session.wakers.discard(woken)
        looking.cancel()


async def _look(session: Session, wake: Callable[[], object], looking: trio.CancelScope) -> None:
    """Looks at an event that cannot call back. A task of its own: a nursery would wrap the function's exceptions."""
    with looking:
        while not session.cancelled():
            await trio.sleep(LOOK)
        wake()
