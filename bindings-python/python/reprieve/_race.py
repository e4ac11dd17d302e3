"""Attempts beside each other, under asyncio: while one is slow another joins it. Each is a task with a context of its
own. The first answer wins; the others are cancelled and awaited until they have unwound, so that nothing of them goes
on when the call has ended.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import _on_asyncio
from ._clock import LOOK, clock
from ._current import CURRENT
from ._request import Broken

if TYPE_CHECKING:
    from ._current import Attempt
    from ._native import Action
    from ._session import Session


def hedges(action: Action, session: Session, loop: Any) -> bool:
    """Another attempt may join this one, and can: attempts beside each other need tasks of asyncio's."""
    return action.hedge_after_ns is not None and session.hedges and loop is _on_asyncio


class Race(ABC):
    """Attempts in flight. What they are, and what their ends say, is the subclass's to know."""

    def __init__(self, session: Session) -> None:
        self.session = session
        #: The attempts that have not come to anything yet, by what tells of it.
        self.attempts: dict[asyncio.Future[Any], Attempt] = {}

    async def decided(self, action: Action) -> Action | None:
        """Runs the attempt of this action, and those that join it, until one decides. Answers what follows: `None`
        where one of them goes on alone."""
        try:
            due = self.start(action)
            while True:
                done, _ = await asyncio.wait(self.attempts, timeout=_left(due), return_when=asyncio.FIRST_COMPLETED)
                for end in sorted(done, key=self._place):
                    following = self.ended(end, self.attempts.pop(end))
                    if following is None or following.kind not in ("pending", "ignored"):
                        return following
                if due is not None and clock().now() >= due:
                    joining, due = self.session.hedge(), None
                    if joining.kind == "attempt":
                        due = self.start(joining)
        except BaseException:
            for made in self.attempts.values():  # any one of them tells how the call ends, once it is cancelled
                self.session.turn_to(made)
            raise

    def leave(self) -> list[asyncio.Future[Any]]:
        """The attempts that have not come to anything are no longer any of the call's. Answers them."""
        ends, self.attempts = self.attempts, {}
        for made in ends.values():
            self.session.turn_to(made)
            self.session.hide()
        return [*ends]

    def start(self, action: Action) -> int | None:
        """Starts an attempt; answers when another may join it, on the driver's clock."""
        made = self.session.beside(action)
        self.attempts[self.launch(made)] = made
        return None if action.hedge_after_ns is None else made.began + action.hedge_after_ns

    @abstractmethod
    def launch(self, made: Attempt) -> asyncio.Future[Any]:
        """Starts an attempt; answers what is done when it has come to something."""

    @abstractmethod
    def ended(self, end: asyncio.Future[Any], made: Attempt) -> Action | None:
        """Tells what an attempt has come to; an action of kind `pending` or `ignored` decides nothing. Raises what is
        no outcome: a cancellation from outside, a `KeyboardInterrupt`."""

    def _place(self, end: asyncio.Future[Any]) -> tuple[bool, int]:
        """Of what has come at the same time, an answer is heard first; failures in the order of their attempts."""
        return error_of(end) is not None, self.attempts[end].number


async def race(
    session: Session,
    action: Action,
    function: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
    first: Callable[..., Awaitable[Any]] | None = None,
) -> Action:
    """Runs the attempt of this action, with `first` for its function, which is prepared, and those that join it.
    Answers what follows."""
    calls = Calls(session, function, args, first)
    try:
        following = await calls.decided(action)
        assert following is not None
        return following
    except BaseException:
        session.stopped_outside()
        raise
    finally:
        tasks = calls.leave()
        for task in tasks:
            task.cancel()
        await unwound(tasks)
        del calls


class Calls(Race):
    """Attempts that answer a value."""

    def __init__(
        self,
        session: Session,
        function: Callable[..., Awaitable[Any]],
        args: tuple[Any, ...],
        first: Callable[..., Awaitable[Any]] | None,
    ) -> None:
        super().__init__(session)
        self._function, self._args, self._first = function, args, first

    def launch(self, made: Attempt) -> asyncio.Future[Any]:
        session, first, self._first = self.session, self._first, None
        whole = session.asked(first or session.function(self._function, made.target), prepared=first is not None)
        return asyncio.get_running_loop().create_task(_alone(session, made, whole, self._args))

    def ended(self, end: asyncio.Future[Any], made: Attempt) -> Action:
        from ._aio import Abandoned, TimedOut

        session, error = self.session, error_of(end)
        session.turn_to(made)
        try:
            if error is None:
                return session.succeeded(end.result())
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
            del error, end  # what a task raises leads to this frame


async def _alone(
    session: Session,
    made: Attempt,
    whole: Callable[..., Awaitable[Any]],
    args: tuple[Any, ...],
) -> Any:
    """The attempt's task."""
    CURRENT.set(made)
    return await _on_asyncio.attempt(session, whole, args, session.request.kwargs, made)


async def unwound(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Waits until cancelled tasks have unwound, however often this is cancelled itself."""
    left, stopped = set(tasks), None
    while left:
        try:
            done, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as error:
            stopped = error
            continue
        for task in done:
            error_of(task)  # has come too late; asyncio is told that somebody has looked
    try:
        if stopped is not None:
            raise stopped
    finally:
        del stopped


def error_of(end: asyncio.Future[Any]) -> BaseException | None:
    """What it has raised; looking at it raises nothing."""
    return asyncio.CancelledError() if end.cancelled() else end.exception()


def _left(due: int | None) -> float | None:
    """How long to wait for a moment, in seconds. A virtual clock is looked at now and then: its hands tell nobody."""
    if due is None:
        return None
    # Rounded up: what is too early would only have to look again.
    left = max(0.0, (due - clock().now()) / 1e9) + 1e-6
    return min(left, LOOK) if clock().virtual else left
