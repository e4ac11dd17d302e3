"""Attempts and waits under trio: cancel scopes. Imported only where trio already is."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import trio

if TYPE_CHECKING:
    from ._current import Attempt
    from ._session import Session

#: How often an event that cannot call back is looked at, in seconds.
LOOK = 0.01


async def attempt(
    session: Session,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    made: Attempt,
) -> Any:
    """An attempt that its timeout, its event, its handle and its run can cut."""
    from ._aio import Abandoned, TimedOut

    if session.deaf:
        with trio.move_on_after(made.timeout) as scope:
            return await function(*args, **kwargs)
        assert scope.cancelled_caught
        raise TimedOut
    outcome: list[Any] = []
    raised: list[BaseException] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch, session, nursery.cancel_scope)
        with trio.move_on_after(made.timeout) as scope:
            try:
                outcome.append(await function(*args, **kwargs))
            except trio.Cancelled:
                raise
            except BaseException as error:  # carried out by hand: a nursery would wrap it in a group
                raised.append(error)
        nursery.cancel_scope.cancel()
    if raised:
        raise raised.pop()
    if outcome:
        return outcome.pop()
    raise TimedOut if scope.cancelled_caught else Abandoned


async def wait(session: Session, seconds: float) -> None:
    """Sleeps; what wakes the session ends it."""
    if session.deaf or seconds <= 0:
        await trio.sleep(max(0.0, seconds))
        return
    with trio.move_on_after(seconds) as scope:
        await _watch(session, scope, woken_is_enough=True)


async def _watch(session: Session, scope: trio.CancelScope, *, woken_is_enough: bool = False) -> None:
    """Cancels the scope when the session is cancelled, or is woken and that is enough."""
    token = trio.lowlevel.current_trio_token()
    woken = trio.Event()
    session.waker = lambda: _set(token, lambda: woken.set())
    pause = LOOK if session.options.cancel is not None else math.inf
    try:
        while not session.cancelled() and not (woken_is_enough and woken.is_set()):
            if woken.is_set():
                woken = trio.Event()
            with trio.move_on_after(pause):
                await woken.wait()
    finally:
        session.waker = None
    scope.cancel()


def _set(token: trio.lowlevel.TrioToken, wake: Callable[[], None]) -> None:
    try:
        token.run_sync_soon(wake)
    except trio.RunFinishedError:
        return
