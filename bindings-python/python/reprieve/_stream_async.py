"""The driver of streams of coroutines: the same loop, as an async generator, under asyncio and trio.

A source that is waited for is cancelled when a timer runs out, and awaited until it has unwound; an item that comes
late is an item. Of a stream that is left early the source is closed, by `aclose()` or by the loop's own care for async
generators.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from . import _aio
from ._aio import Abandoned, TimedOut
from ._current import CURRENT
from ._stream_session import StreamAttempt, StreamSession
from ._stream_source import Source

if TYPE_CHECKING:
    from ._native import Action
    from ._stream import Streamed

R = TypeVar("R")
show = CURRENT.set


async def drive(call: Streamed) -> AsyncGenerator[Any, None]:
    """The items of a call. One is asked for when the consumer asks, and goes to it as it is."""
    loop = _aio.backend()
    session = call.begin(interrupted=True)
    run: Running | None = None
    try:
        action = session.begin()
        while action.kind not in ("done", "stop"):
            if action.kind != "attempt":
                if action.discard is not None:
                    yield session.discard(action.discard)
                action = await _aio.between(loop, session, action)
                continue
            run = Running(loop, session, session.attempt(action))
            following = await run.open(call)
            if following is None and session.buffered:
                following = await run.gather()
            if following is None:
                got, attempt, asking = session.got, run.attempt, False
                for item in session.commit():
                    got.append(item)
                    yield item
                advance, keep = run.bound_advance, session.keeping()
                kind: object = None
                sign: Callable[[Any], bool] | None = None
                try:
                    while True:
                        asking, token = True, show(attempt)
                        try:
                            item = await advance()
                        finally:
                            hide(token)
                        if type(item) is not kind:
                            kind, sign = session.reading.sign_of(item)
                        if sign is not None and sign(item):
                            session.look(attempt, item)
                        asking = False
                        keep(item)
                        yield item
                except Exception as error:
                    if not asking:  # the consumer has thrown it in
                        raise
                    following = await run.ended(error)
            await run.close()
            action = following
        if action.kind == "stop":
            raise session.give_up(action)
        for item in session.rest:
            yield item
    except BaseException:
        session.left()
        raise
    finally:
        if run is not None:
            await run.close()
        call.end()


class Running:
    """One attempt: its source, and what can cut it."""

    def __init__(self, loop: Any, session: StreamSession, attempt: StreamAttempt) -> None:
        self.session, self.attempt, self.source = session, attempt, Source()
        self._loop = loop
        self._watch = loop.Watch(session, attempt)

    async def open(self, call: Streamed) -> Action | None:
        """Goes on until the first content is there: `None`, or what follows where it ends before."""
        session, source = self.session, self.source

        async def run() -> None:
            await source.aopen(await call.run_async(session, self.attempt.target))
            session.opened(source)
            while not session.reading.opens(await source.advance()):
                self.attempt.heard()

        try:
            with self._watch:
                await self._visibly(run)
        except Exception as error:
            return await self.ended(error)
        return None

    @property
    def bound_advance(self) -> Callable[[], Awaitable[Any]]:
        """What asks the source for its next item, bounded by what may cut the attempt from now on."""
        return self.advance if self._watch.needed else self.source.advance

    async def gather(self) -> Action:
        """Takes what comes until the answer is whole, or is no more."""
        session, attempt = self.session, self.attempt
        session.got += session.commit()
        advance = self.bound_advance
        try:
            while True:
                item = await self._visibly(advance)
                _, sign = session.reading.sign_of(item)
                if sign is not None and sign(item):
                    session.look(attempt, item)
                session.got.append(item)
        except Exception as error:
            return await self.ended(error)

    async def advance(self) -> Any:
        """The source's next item, unless something cuts the attempt."""
        with self._watch:
            return await self.source.advance()

    async def ended(self, error: Exception) -> Action:
        """What follows when the source has no more, or has failed."""
        if isinstance(error, TimedOut):
            return self.session.stalled(self._watch.words)
        if isinstance(error, Abandoned):
            return self.session.abandoned()
        if self._loop.cancelled(self.attempt):  # from outside, and something made an exception of it
            raise error
        return await self.session.ended_async(error)

    async def close(self) -> None:
        """Closes the source, visibly, and waits until it is."""
        self._watch.close()
        await self._visibly(self.source.aclose)

    async def _visibly(self, function: Callable[[], Awaitable[R]]) -> R:
        token = CURRENT.set(self.attempt)
        try:
            return await function()
        finally:
            hide(token)


def hide(token: Any) -> None:
    """The attempt is no longer visible."""
    try:
        CURRENT.reset(token)
    except ValueError:  # what is left of a loop is thrown away in another context
        return
