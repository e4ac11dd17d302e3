"""Attempts of a stream beside each other, under asyncio: while one has no content another joins it. The first with
content goes on alone; the others are cancelled at once, and awaited until they have unwound before the call ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ._current import CURRENT
from ._race import Race, error_of, unwound

if TYPE_CHECKING:
    from ._current import Attempt
    from ._native import Action
    from ._stream_async import End, Running
    from ._stream_session import StreamAttempt, StreamSession


class Racing(Race):
    """What `Running` is to one attempt, to several."""

    def __init__(self, session: StreamSession, running: Callable[[Any], Running], action: Action) -> None:
        super().__init__(session)
        self._running, self._action = running, action
        self._lanes: dict[int, Lane] = {}
        #: Of the latest attempt that has come to something: the one that goes on, where one does.
        self._lane: Lane

    async def open(self) -> Action | None:
        """Goes on until the first content of one is there: `None`, or what follows where all end before."""
        following = await self.decided(self._action)
        self._end_others()
        return following

    def launch(self, made: Attempt) -> asyncio.Future[Any]:
        lane = self._lanes[made.number] = Lane(self._running(made))
        return lane.do(lane.running.first)

    def ended(self, end: asyncio.Future[Any], made: Attempt) -> Action | None:
        self.session.turn_to(made)
        self._lane = self._lanes[made.number]
        come_to: End | None = end.result()
        if come_to is None:
            return None
        self._lane.end()
        return self._lane.running.told(come_to)

    @property
    def attempt(self) -> StreamAttempt:
        return self._lane.running.attempt

    @property
    def bound_advance(self) -> Callable[[], Awaitable[Any]]:
        """What asks the source for its next item."""
        return partial(self._lane.do, self._lane.running.bound_advance)

    async def gather(self) -> Action:
        """Takes what comes until the answer is whole, or is no more."""
        following: Action = await self._lane.do(self._lane.running.gather)
        return following

    async def over(self, error: Exception) -> Action:
        """What follows when the source has no more, or has failed."""
        following: Action = await self._lane.do(partial(self._lane.running.over, error))
        return following

    async def close(self) -> None:
        """Ends what is under way, and waits until all have unwound and their sources are closed."""
        self._end_others()
        for lane in self._lanes.values():
            lane.end()
        await unwound(lane.task for lane in self._lanes.values())
        for lane in self._lanes.values():  # one that was cut before it had begun
            await lane.running.close()

    def _end_others(self) -> None:
        for made in self.attempts.values():
            self._lanes[made.number].end()
        for end in self.leave():
            if not end.cancel():
                error_of(end)  # too late; asyncio is told that somebody has looked


class Lane:
    """An attempt in a task of its own, from its opening to its closing: what its source holds open, as a timeout or a
    task group, belongs to the task that has opened it."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self._loop = asyncio.get_running_loop()
        #: What is to be done next, and who waits for it; nothing where it is over.
        self._wanted: asyncio.Future[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]] | None]
        self._wanted = self._loop.create_future()
        self._busy = self._over = False
        self.task = self._loop.create_task(self._live())

    def do(self, function: Callable[[], Awaitable[Any]]) -> asyncio.Future[Any]:
        """Runs it in the task, and answers what it will come to. One thing is done at a time."""
        done = self._loop.create_future()
        self._busy = True
        self._wanted.set_result((function, done))
        return done

    def end(self) -> None:
        """Closes the source; what is being done is cancelled."""
        if self._over:
            return
        self._over = True
        if self._busy:
            self.task.cancel()
        else:
            self._wanted.set_result(None)

    async def _live(self) -> None:
        CURRENT.set(self.running.attempt)
        try:
            # What is cancelled may still answer: then it is over all the same.
            while not self._over and (wanted := await self._wanted) is not None:
                self._wanted = self._loop.create_future()
                await self._do(*wanted)
        except asyncio.CancelledError:
            if not self._over:
                raise
        finally:
            await self.running.close()

    async def _do(self, function: Callable[[], Awaitable[Any]], done: asyncio.Future[Any]) -> None:
        try:
            value = await function()
        except asyncio.CancelledError:
            done.cancel()
            raise
        except BaseException as error:
            if not done.done():  # else nobody waits for it any more
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(value)
        finally:
            self._busy = False
            del done
