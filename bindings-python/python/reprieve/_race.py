"""Attempts beside each other, under asyncio: each is a task with a context of its own. The first answer wins; the
others are cancelled and awaited until they have unwound, so that nothing of them goes on when the call has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from . import _on_asyncio
from ._clock import clock
from ._current import CURRENT
from ._request import Broken

if TYPE_CHECKING:
    from ._current import Attempt
    from ._native import Action
    from ._session import Session


async def race(
    session: Session,
    action: Action,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    first: Callable[..., Awaitable[Any]] | None = None,
) -> Action:
    """Runs the attempt of this action, with `first` for its function, which is prepared, and those that join it.
    Answers what follows."""
    running = Running(session, function, args)
    stop = None if session.deaf else _on_asyncio.watch(session, running.woken)
    try:
        due = running.start(action, first)
        while True:
            done, _ = await asyncio.wait(running.tasks, timeout=_left(due), return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=running.place):
                action = running.ended(task)
                if action.kind not in ("pending", "ignored"):
                    return action
            if due is not None and clock().now() >= due:
                action, due = session.hedge(), None
                if action.kind == "attempt":
                    due = running.start(action)
    except BaseException:
        running.stopped()
        raise
    finally:
        if stop is not None:
            stop()
        await running.cleared()
        del running


class Running:
    """The tasks of the attempts in flight."""

    def __init__(self, session: Session, function: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> None:
        self._session, self._function, self._args = session, function, args
        self.tasks: dict[asyncio.Task[Any], Attempt] = {}

    def start(self, action: Action, first: Callable[..., Awaitable[Any]] | None = None) -> int | None:
        """Starts an attempt; answers when another may join it, on the driver's clock."""
        made = self._session.beside(action)
        whole = self._session.asked(first or self._session.function(self._function), prepared=first is not None)
        alone = _alone(self._session, made, whole, self._args)
        self.tasks[asyncio.get_running_loop().create_task(alone)] = made
        return None if action.hedge_after_ns is None else made.began + action.hedge_after_ns

    def place(self, task: asyncio.Task[Any]) -> tuple[bool, int]:
        """Of what has come at the same time, an answer is heard first; failures in the order of their attempts."""
        return _error_of(task) is not None, self.tasks[task].number

    def ended(self, task: asyncio.Task[Any]) -> Action:
        """Tells how an attempt ended. Raises what is no outcome: a cancellation from outside, a `KeyboardInterrupt`."""
        from ._aio import Abandoned, TimedOut

        session, made = self._session, self.tasks.pop(task)
        session.turn_to(made)
        # Cut before it had begun, a task ends as if it had been cancelled from outside.
        error = Abandoned() if task.cancelled() and made.cut else _error_of(task)
        try:
            if error is None:
                return session.succeeded(task.result())
            if isinstance(error, TimedOut):
                return session.timed_out()
            if isinstance(error, Abandoned):
                return session.abandoned()
            if isinstance(error, Broken):
                return session.broken(error)
            if isinstance(error, Exception):
                return session.failed(error)
            raise error
        finally:
            del error, task  # what a task raises leads to this frame

    def woken(self) -> None:
        """Something has woken the session: its attempts are cut where it is cancelled."""
        if self._session.cancelled():
            for task, made in list(self.tasks.items()):
                _on_asyncio.cut(made, task, "cancel")

    def stopped(self) -> None:
        """The driver itself is stopped. Any one attempt will do: the first outcome ends a call that is cancelled."""
        for made in self.tasks.values():
            self._session.turn_to(made)
        self._session.stopped_outside()

    async def cleared(self) -> None:
        """Cancels what is still under way, and waits until it has unwound, however often this is cancelled itself."""
        stopped: asyncio.CancelledError | None = None
        for task, made in self.tasks.items():
            self._session.turn_to(made)
            self._session.hide()
            task.cancel()
        while self.tasks:
            try:
                done, _ = await asyncio.wait(self.tasks, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError as error:
                stopped = error
                continue
            for task in done:
                del self.tasks[task]
                if not task.cancelled():
                    task.exception()  # has come too late; asyncio is told that somebody has looked
        try:
            if stopped is not None:
                raise stopped
        finally:
            del stopped


async def _alone(
    session: Session,
    made: Attempt,
    whole: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
) -> Any:
    """The attempt's task."""
    CURRENT.set(made)
    return await _on_asyncio.attempt(session, whole, args, session.request.kwargs, made, watched=False)


def _left(due: int | None) -> float | None:
    """How long to wait for a moment, in seconds. A virtual clock is looked at now and then: its hands tell nobody."""
    if due is None:
        return None
    # Rounded up: what is too early would only have to look again.
    left = max(0.0, (due - clock().now()) / 1e9) + 1e-6
    return min(left, _on_asyncio.LOOK) if clock().virtual else left


def _error_of(task: asyncio.Task[Any]) -> BaseException | None:
    """What a task has raised; looking at it raises nothing."""
    return asyncio.CancelledError() if task.cancelled() else task.exception()
