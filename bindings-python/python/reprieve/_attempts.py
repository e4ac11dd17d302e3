"""Attempts as a loop: `for attempt in policy.attempts(): with attempt: ...`, and the same with `async for`.

The `with` block is the attempt. What it raises is swallowed when there is another attempt to come, and else goes on.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _aio, _driver
from ._current import Attempt
from ._errors import ConfigError
from ._request import Broken
from ._session import Session

if TYPE_CHECKING:
    from ._native import Action
    from ._options import Caller


class Attempts:
    """The attempts of one call. Iterate once."""

    def __init__(self, owner: Caller, request: dict[str, Any]) -> None:
        if owner._options.check is not None:
            raise ConfigError("check", "a function", "no place in attempts(), which sees no answer: raise in the block")
        self._owner = owner
        self._request = request
        self._session: Session | None = None
        self._action: Action | None = None

    def __iter__(self) -> Iterator[LoopAttempt]:
        session = self._begin()
        try:
            while (action := self._next(session)) is not None:
                if action.kind != "attempt":
                    self._action = _driver.go_on(session, action)
                    continue
                try:
                    request = session.request.prepared(action.target or "")
                except Broken as broken:
                    self._action = session.broken(broken)
                else:
                    yield LoopAttempt(self, session, action, request)
        except BaseException:
            session.stopped_outside()
            raise
        finally:
            session.close()

    async def __aiter__(self) -> AsyncIterator[LoopAttempt]:
        session, loop = self._begin(), _aio.backend()
        try:
            while (action := self._next(session)) is not None:
                if action.kind != "attempt":
                    self._action = await _aio.between(loop, session, action)
                    continue
                try:
                    request = await session.request.prepared_async(action.target or "")
                except Broken as broken:
                    self._action = session.broken(broken)
                else:
                    yield LoopAttempt(self, session, action, request)
        except BaseException:
            session.stopped_outside()
            raise
        finally:
            session.close()

    def _begin(self) -> Session:
        if self._session is not None:
            raise RuntimeError("attempts() is one call: ask for new ones to make another")
        self._session = session = Session(self._owner, self._request)
        self._action = session.begin()
        return session

    def _next(self, session: Session) -> Action | None:
        """The next thing to do; `None` after a success. A stop that no `with` block has raised is raised here."""
        action, self._action = self._action, None
        if action is None:
            raise RuntimeError("every attempt of attempts() needs its `with` block")
        if action.kind == "done":
            return None
        if action.kind == "stop":
            raise session.give_up(action)
        return action


class LoopAttempt:
    """One attempt: enter it with `with`."""

    def __init__(self, attempts: Attempts, session: Session, action: Action, request: dict[str, Any]) -> None:
        self._attempts = attempts
        self._session = session
        self._action = action
        #: Its number over the whole call, from 1.
        self.number = action.number or 0
        #: The id of the target it is aimed at.
        self.target = action.target or ""
        #: How long it may take, in seconds.
        self.timeout = action.timeout or 0.0
        #: What `attempts()` was given, repaired and prepared for this attempt.
        self.request = request

    def __enter__(self) -> Attempt:
        return self._session.attempt(self._action)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        session, attempts = self._session, self._attempts
        if error is None:
            attempts._action = session.succeeded(None)
            return False
        if not isinstance(error, Exception):
            session.stopped_outside()
            return False
        action = attempts._action = session.failed(error)
        if action.kind != "stop":
            return True
        given_up = session.give_up(action)
        session.close()
        if given_up is error:
            return False
        try:
            raise given_up
        finally:
            del given_up, error, traceback  # its own traceback holds this frame
