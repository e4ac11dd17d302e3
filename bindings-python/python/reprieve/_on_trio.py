"""Attempts and waits under trio: one cancel scope each. Imported only where trio already is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from ._current import Attempt
    from ._session import Session

#: How often an event that cannot call back is looked at, in seconds.
LOOK = 0.01


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

    session.waker = woken
    looking = trio.CancelScope()
    if session.options.cancel is not None:
        trio.lowlevel.spawn_system_task(_look, session, wake, looking)
    elif session.cancelled():
        wake()
    try:
        yield
    finally:
        session.waker = None
        looking.cancel()


async def _look(session: Session, wake: Callable[[], object], looking: trio.CancelScope) -> None:
    """Looks at an event that cannot call back. A task of its own: a nursery would wrap the function's exceptions."""
    with looking:
        while not session.cancelled():
            await trio.sleep(LOOK)
        wake()
