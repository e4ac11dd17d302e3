"""The driver of streams of coroutines: the same loop, as an async generator, under asyncio and trio.

A source that is waited for is cancelled when a timer runs out, and awaited until it has unwound; an item that comes
late is an item. Of a stream that is left early the source is closed, by `aclose()` or by the loop's own care for async
generators.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from . import _aio
from ._aio import Abandoned, TimedOut
from ._current import CURRENT
from ._race import hedges
from ._request import checked_async
from ._stream_race import Racing
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
    run: Running | Racing | None = None
    try:
        action = session.begin()
        while action.kind not in ("done", "stop"):
            if action.kind != "attempt":
                if action.discard is not None:
                    yield session.discard(action.discard)
                action = await _aio.between(loop, session, action)
                continue
            if hedges(action, session, loop):
                run = Racing(session, lambda made: Running(loop, session, made, call), action)
            else:
                run = Running(loop, session, session.attempt(action), call)
            following = await run.open()
            if following is None and session.buffered:
                following = await run.gather()
            if following is None:
                attempt = run.attempt
                got, reading, asking = attempt.got, attempt.reading, False
                for item in session.commit(attempt):
                    got.append(item)
                    yield item
                advance, keep = run.bound_advance, session.keeping(attempt)
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
                            kind, sign = reading.sign_of(item)
                        if sign is not None and sign(item):
                            attempt.look(item)
                        asking = False
                        keep(item)
                        yield item
                except Exception as error:
                    if not asking:  # the consumer has thrown it in
                        raise
                    following = await run.over(error)
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


class End(NamedTuple):
    """What an attempt has come to."""

    #: What is wrong; nothing where its answer is whole.
    fault: Exception | None


class Running:
    """One attempt: its source, and what can cut it."""

    def __init__(self, loop: Any, session: StreamSession, attempt: StreamAttempt, call: Streamed) -> None:
        self.attempt = attempt
        self._session, self._loop, self._call, self._source = session, loop, call, Source()
        self._watch = loop.Watch(session, attempt)

    async def open(self) -> Action | None:
        """Goes on until the first content is there: `None`, or what follows where it ends before."""
        end = await self.first()
        return None if end is None else self.told(end)

    async def first(self) -> End | None:
        """The same; what it has come to before is yet to be told."""
        attempt, source = self.attempt, self._source

        async def run() -> None:
            await source.aopen(await self._call.run_async(self._session, attempt.target))
            attempt.opened(source)
            while not attempt.reading.opens(await source.advance()):
                attempt.heard()

        try:
            with self._watch:
                await self._visibly(run)
        except Exception as error:
            return await self._judged(error)
        return None

    def told(self, end: End) -> Action:
        """What follows on what the attempt has come to."""
        self._session.turn_to(self.attempt)
        if end.fault is None:
            return self._session.done()
        if isinstance(end.fault, TimedOut):
            return self._session.stalled(self._watch.words)
        if isinstance(end.fault, Abandoned):
            return self._session.abandoned()
        return self._session.failing(end.fault)

    @property
    def bound_advance(self) -> Callable[[], Awaitable[Any]]:
        """What asks the source for its next item, bounded by what may cut the attempt from now on."""
        return self.advance if self._watch.needed else self._source.advance

    async def gather(self) -> Action:
        """Takes what comes until the answer is whole, or is no more."""
        attempt = self.attempt
        attempt.got += self._session.commit(attempt)
        advance = self.bound_advance
        try:
            while True:
                item = await self._visibly(advance)
                _, sign = attempt.reading.sign_of(item)
                if sign is not None and sign(item):
                    attempt.look(item)
                attempt.got.append(item)
        except Exception as error:
            return await self.over(error)

    async def advance(self) -> Any:
        """The source's next item, unless something cuts the attempt."""
        with self._watch:
            return await self._source.advance()

    async def over(self, error: Exception) -> Action:
        """What follows when the source has no more, or has failed."""
        return self.told(await self._judged(error))

    async def _judged(self, error: Exception) -> End:
        attempt, check = self.attempt, self._session.options.check
        if attempt.ended or self._loop.cancelled(attempt):  # from outside; something made an exception of it
            raise error
        if not attempt.is_end(error):
            return End(error)
        try:
            attempt.end()
            if check is not None:
                attempt.answer = attempt.whole
                await checked_async(check, attempt.answer)
        except Exception as fault:
            return End(fault)
        return End(None)

    async def close(self) -> None:
        """Closes the source, visibly, and waits until it is."""
        self._watch.close()
        await self._visibly(self._source.aclose)

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
