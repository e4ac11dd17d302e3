"""Streams under a policy: what `policy.stream` and a decorated generator answer."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from . import _stream_async, _stream_sync
from ._errors import MisuseError
from ._functions import is_async_generator_function, is_coroutine_function, is_generator_function
from ._stream_session import StreamSession

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._options import Caller
    from ._trace import Trace

T_co = TypeVar("T_co", covariant=True)


class Streamed:
    """The call behind a stream: what it runs, and its session once it has begun."""

    def __init__(
        self, owner: Caller, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._owner, self._function, self._args, self._kwargs = owner, function, args, kwargs
        self.session: StreamSession | None = None
        self.over = False

    def begin(self, *, interrupted: bool) -> StreamSession:
        """Makes the session. `interrupted`: the driver can interrupt an attempt."""
        self.over = True  # unless it begins
        self.session = StreamSession(self._owner, self._kwargs, interrupted=interrupted)
        self.over = False
        return self.session

    def run(self, session: StreamSession, target: str) -> Any:
        """What the function of the attempt's target answers."""
        return session.function(self._function, target)(*self._args, **session.request.prepared(target))

    async def run_async(self, session: StreamSession, target: str) -> Any:
        """The same, where `prepare` may be a coroutine function; what the function answers is not awaited here."""
        request = await session.request.prepared_async(target)
        return session.function(self._function, target)(*self._args, **request)

    def end(self) -> None:
        """Lets go of what the call needed."""
        self.over = True
        if self.session is not None:
            self.session.close()


class _Consumed:
    """What both kinds of streams have: one call, which is consumed once."""

    def __init__(self, call: Streamed) -> None:
        self._call = call

    @property
    def trace(self) -> Trace | None:
        """The records so far; `None` before the first item was asked for."""
        session = self._call.session
        return session.trace() if session else None

    @property
    def attempts(self) -> int:
        """How many attempts were made so far."""
        session = self._call.session
        return session.call.attempts if session else 0

    @property
    def _number(self) -> int:
        """The number of the attempt that the items come from."""
        session = self._call.session
        return session.number if session else 0

    def _once(self) -> None:
        if self._call.over:
            raise MisuseError("this stream is over, and each is consumed once: ask for a new one, or keep its items")

    def __repr__(self) -> str:
        state = "over" if self._call.over else f"{self.attempts} attempts"
        return f"<{type(self).__name__} {state}>"


class Stream(_Consumed, Generator[T_co, None, None]):
    """The items of one call: a generator, and a context manager that closes its source.

    Nothing runs before the first item is asked for. Who stops early closes it, by `with` or `close()`, or drops it.

    A source that blocks cannot be interrupted: its timers are looked at whenever it brings something, be it a ping.
    Hand `current_attempt().read_timeout` to the client, as what it may wait for bytes; a transport that calls
    `current_attempt().heard()` lets the timers end a source that only pings.
    """

    def __init__(self, call: Streamed) -> None:
        super().__init__(call)
        self._items: Generator[T_co, None, None] = _stream_sync.drive(call)

    def __iter__(self) -> Generator[T_co, None, None]:
        self._once()
        return self._items

    def __next__(self) -> T_co:
        return next(self._items)

    def send(self, value: None, /) -> T_co:
        """The next item: nothing can be sent to the source."""
        _nothing(value)
        return next(self._items)

    def throw(self, *raised: Any) -> T_co:
        """Ends the call as one that its consumer has left, and raises this."""
        return self._items.throw(*raised)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the call, and closes its source."""
        self._items.close()
        self._call.over = True


class AsyncStream(_Consumed, AsyncGenerator[T_co, None]):
    """The items of one call: an async generator, and an async context manager that closes its source.

    Nothing runs before the first item is asked for. Who stops early closes it, by `async with` or `aclose()`; of one
    that is dropped the loop closes the source, as it does for async generators (trio warns of that).

    A source that is waited for too long is cancelled. Silence is what no bytes break; a client that hides pings, as
    anthropic's does, hides them from this timer too, unless a transport calls `current_attempt().heard()`.
    """

    def __init__(self, call: Streamed) -> None:
        super().__init__(call)
        self._async_items: AsyncGenerator[T_co, None] = _stream_async.drive(call)

    def __aiter__(self) -> AsyncGenerator[T_co, None]:
        self._once()
        return self._async_items

    async def __anext__(self) -> T_co:
        return await self._async_items.__anext__()

    async def asend(self, value: None, /) -> T_co:
        """The next item: nothing can be sent to the source."""
        _nothing(value)
        return await self._async_items.__anext__()

    async def athrow(self, *raised: Any) -> T_co:
        """Ends the call as one that its consumer has left, and raises this."""
        return await self._async_items.athrow(*raised)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ends the call, closes its source, and waits until it is."""
        await self._async_items.aclose()
        self._call.over = True


class EitherStream(Stream[T_co], AsyncStream[T_co]):
    """The items of a plain function, which may answer either kind: whoever iterates first says how it is driven."""


def _nothing(value: object) -> None:
    if value is not None:
        raise TypeError(f"nothing can be sent into a stream, whose source may be another one later: {value!r}")


def stream(
    owner: Caller, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Stream[Any] | AsyncStream[Any]:
    """The stream of a function under a policy, the kind that it is known to be."""
    kind: Callable[[Streamed], Stream[Any] | AsyncStream[Any]] = EitherStream
    if is_async_generator_function(function) or is_coroutine_function(function):
        kind = AsyncStream
    elif is_generator_function(function):
        kind = Stream
    return kind(Streamed(owner, function, args, kwargs))


def wrap(owner: Caller, function: Callable[..., Any]) -> Callable[..., Any]:
    """A generator function of either kind, under a policy."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return stream(owner, function, args, kwargs)

    return call
