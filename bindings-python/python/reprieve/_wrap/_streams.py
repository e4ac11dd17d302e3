"""The streams of a wrapped client: objects of the SDK's own class, whose items come from a call under the policy.

The first content is waited for when the stream is opened, so that what is raised until then is raised there, as it is
without a policy. Helpers that take a stream of the SDK's (`.stream()` managers) take these.
"""

# The SDK is not imported here: its objects are of any type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

from .._current import current_attempt
from .._errors import ConfigError
from .._stream import AsyncStream, Stream, Streamed
from ._wrapping import ClientCall, named_like

Send = Callable[..., Any]

NOTHING: Any = object()
#: The modes that need nothing from the user but the stream.
MODES = ("before_first_item", "buffered", "restart")


def opened(call: ClientCall, send: Send, request: Mapping[str, Any], *, client: Any, source: Send) -> Any:
    """The stream of a call, once its first content is there. `send` answers the SDK's stream, and `source` its items.

    What comes back is of the same class, and iterates over the items of the attempt that brought them.
    """
    kept = Kept()

    def attempt(client: Any, request: dict[str, Any], made: Any) -> Any:
        return source(kept.keep(send(client, request, made)))

    items = kept.items = items_of(call, attempt, request, client=client)
    first = next(items, NOTHING)
    return _guarded(kept, items, _chained(first, items))


async def opened_async(call: ClientCall, send: Send, request: Mapping[str, Any], *, client: Any, source: Send) -> Any:
    """The same for a client that is awaited."""
    kept = Kept()

    async def attempt(client: Any, request: dict[str, Any], made: Any) -> Any:
        return source(kept.keep(await send(client, request, made)))

    items = kept.items = items_of_async(call, attempt, request, client=client)
    first = await anext(items, NOTHING)
    return _guarded(kept, items, _Chained(first, items))


def items_of(
    call: ClientCall, send: Send, request: Mapping[str, Any], *, client: Any, modes: Sequence[str] = MODES
) -> Stream[Any]:
    """The items of a call, of which nothing runs before the first is asked for. `send` answers those of one attempt."""
    _refuse(call, modes)
    return Stream(Streamed(call.bound(send, client), call.attempt(send, client), (), dict(request)))


def items_of_async(
    call: ClientCall, send: Send, request: Mapping[str, Any], *, client: Any, modes: Sequence[str] = MODES
) -> AsyncStream[Any]:
    """The same for a client that is awaited."""
    _refuse(call, modes)
    return AsyncStream(Streamed(call.bound(send, client), call.attempt_async(send, client), (), dict(request)))


class Event(dict[str, Any]):
    """What an item says, as the core reads it, where the item itself does not show it."""

    def __init__(self, said: Mapping[str, Any], own: Any) -> None:
        super().__init__(said)
        self.own = own


class Kept:
    """The SDK's streams of the attempts: several may be under way, and one of them is consumed."""

    def __init__(self) -> None:
        self.items: Any = None
        self._by_number: dict[int, Any] = {}

    def keep(self, own: Any) -> Any:
        """Keeps what the attempt under way has opened."""
        attempt = current_attempt()
        assert attempt is not None
        self._by_number[attempt.number] = own
        return own

    @property
    def own(self) -> Any:
        """The stream of the attempt that the items come from; until it is open, the latest one that was."""
        number = self.items._number
        return self._by_number[number if number in self._by_number else max(self._by_number)]


def _refuse(call: ClientCall, modes: Sequence[str]) -> None:
    """What goes on from what was delivered is another request, which only its user can make."""
    if call.stream_mode not in modes:
        raise ConfigError(
            "stream.mode",
            f'"{call.stream_mode}"',
            f"{' or '.join(modes)} with this client; for other modes use policy.stream(function), where the function "
            "asks for the rest of what current_attempt().delivered has, or the consumer takes a Discard",
        )


def _guarded(kept: Kept, items: Any, chained: Any) -> Any:
    base: type[Any] = type(kept.own)
    made: Any = object.__new__(_class_for(base, awaited=isinstance(items, AsyncStream)))
    made.__dict__.update(_kept=kept, _items=items, _iterator=chained)
    return made


def _chained(first: Any, items: Stream[Any]) -> Generator[Any, None, None]:
    if first is not NOTHING:
        yield first.own if type(first) is Event else first
        for item in items:
            yield item.own if type(item) is Event else item


class _Chained:
    """The same for a client that is awaited; no generator, of which each costs half a microsecond for an item."""

    __slots__ = ("_advance", "_rest")

    def __init__(self, first: Any, items: AsyncStream[Any]) -> None:
        advance: Callable[[], Awaitable[Any]] = items.__anext__ if first is NOTHING else aiter(items).__anext__

        async def once() -> Any:
            self._advance = advance
            return first

        self._advance = advance if first is NOTHING else once
        self._rest = advance

    def close(self) -> None:
        """The first item is not delivered any more."""
        self._advance = self._rest

    def __aiter__(self) -> _Chained:
        return self

    def __anext__(self) -> Awaitable[Any]:
        return self._advance()


_classes: dict[type, type] = {}


def _class_for(base: type, *, awaited: bool) -> type:
    """A class derived from the SDK's stream, under its name."""
    if base not in _classes:
        bases = (_AsyncGuarded if awaited else _Guarded, base)
        _classes[base] = named_like(base, type(base.__name__, bases, {}))
    return _classes[base]


class _Shared:
    _kept: Kept
    _items: Any
    _iterator: Any
    #: Somebody has asked for an iterator, or closed the stream.
    _used = False

    def _use(self) -> Any:
        """The iterator; raises `MisuseError` where it has nothing left, as a loop that finds nothing explains nothing.
        Who left a loop early may go on."""
        if self._used:
            self._items._once()
        self._used = True
        return self._iterator

    def _leave(self) -> None:
        """The stream is closed: its first item, which waits for the consumer, is not delivered any more."""
        self._used = True
        self._iterator.close()

    @property
    def response(self) -> Any:
        """The HTTP response of the attempt that the items come from."""
        return self._kept.own.response

    @property
    def trace(self) -> Any:
        """The records of the call so far."""
        return self._items.trace

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kept.own, name)


class _Guarded(_Shared):
    def __next__(self) -> Any:
        return next(self._iterator)

    def __iter__(self) -> Iterator[Any]:
        iterator: Iterator[Any] = self._use()
        return iterator

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the call, and closes the response."""
        self._leave()
        self._items.close()


class _AsyncGuarded(_Shared):
    def __anext__(self) -> Awaitable[Any]:
        return self._iterator.__anext__()  # type: ignore[no-any-return]

    def __aiter__(self) -> AsyncIterator[Any]:
        iterator: AsyncIterator[Any] = self._use()
        return iterator

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_raised: object) -> None:
        await self.close()

    def close(self) -> Awaitable[None]:
        """Ends the call, and closes the response."""
        self._leave()
        closing: Awaitable[None] = self._items.aclose()
        return closing

    aclose = close
