"""The driver of streams of plain functions: one loop, as a generator. What to do is the machine's to say.

A source that blocks cannot be interrupted: its timers are looked at when it answers, and whenever a transport says that
bytes have come (`current_attempt().heard()`). The attempt is visible only while its source runs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from . import _driver
from ._current import CURRENT
from ._stream_session import StreamAttempt, StreamSession
from ._stream_source import Source

if TYPE_CHECKING:
    from ._native import Action
    from ._stream import Streamed

R = TypeVar("R")


def drive(call: Streamed) -> Generator[Any, None, None]:
    """The items of a call. One is asked for when the consumer asks, and goes to it as it is."""
    session, source = call.begin(interrupted=False), Source()
    try:
        action = session.begin()
        while action.kind not in ("done", "stop"):
            if action.kind == "attempt":
                attempt, source = session.attempt(action), Source()
                following = _open(call, session, attempt, source)
                if following is None and session.buffered:
                    following = _gather(session, attempt, source)
                action = following or (yield from _deliver(session, attempt, source))
                _visibly(attempt, source.close)
            else:
                if action.discard is not None:
                    yield session.discard(action.discard)
                action = _driver.go_on(session, action)
        if action.kind == "stop":
            raise session.give_up(action)
        yield from session.rest
    except BaseException:
        session.left()
        raise
    finally:
        source.close()
        call.end()


def _open(call: Streamed, session: StreamSession, attempt: StreamAttempt, source: Source) -> Action | None:
    """Runs the attempt until its first content is there: `None`, or what follows where it ends before."""
    reading, timers = attempt.reading, attempt.timers

    def run() -> Action | None:
        source.open(call.run(session, attempt.target))
        attempt.opened(source)
        timers.ask()
        while not reading.opens(source.advance()):
            timers.ask()
            if session.cancelled():
                return session.abandoned()
            if words := timers.overdue:
                return session.stalled(words)
        return None

    try:
        return _visibly(attempt, run)
    except Exception as error:
        return session.ended(error)


def _gather(session: StreamSession, attempt: StreamAttempt, source: Source) -> Action:
    """Takes what comes until the answer is whole, or is no more."""
    got, reading, timers = attempt.got, attempt.reading, attempt.timers
    got += session.commit(attempt)

    def run() -> Action:
        timers.ask()
        while True:
            item = source.advance()
            _, sign = reading.sign_of(item)
            if sign is not None and sign(item):
                attempt.look(item)
            got.append(item)
            timers.ask()
            if session.cancelled():
                return session.abandoned()
            if words := timers.overdue:
                return session.stalled(words)

    try:
        return _visibly(attempt, run)
    except Exception as error:
        return session.ended(error)


def _deliver(session: StreamSession, attempt: StreamAttempt, source: Source) -> Generator[Any, None, Action]:
    """Delivers what comes, as it comes, until there is no more."""
    got, advance, reading, timers = attempt.got, source.advance, attempt.reading, attempt.timers
    show, hide, deaf, asking = CURRENT.set, CURRENT.reset, session.deaf, False
    kind: object = None
    sign: Callable[[Any], bool] | None = None
    for item in session.commit(attempt):
        got.append(item)
        yield item
    timed, keep = timers.armed, session.keeping(attempt)
    try:
        while deaf or not session.cancelled():
            if timed:
                timers.ask()
            asking, token = True, show(attempt)
            try:
                item = advance()
            finally:
                hide(token)
            if type(item) is not kind:
                kind, sign = reading.sign_of(item)
            if sign is not None and sign(item):
                attempt.look(item)
            asking = False
            keep(item)
            yield item
        return session.abandoned()
    except Exception as error:
        if not asking:  # the consumer has thrown it in
            raise
        return session.ended(error)


def _visibly(attempt: StreamAttempt, run: Callable[[], R]) -> R:
    """Runs something of the attempt's."""
    token = CURRENT.set(attempt)
    try:
        return run()
    finally:
        CURRENT.reset(token)
