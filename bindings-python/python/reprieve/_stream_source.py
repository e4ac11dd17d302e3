"""What the function of a stream may answer, and how each is iterated and closed.

A generator, any iterator or iterable, a client's stream object, a context manager of one of these (the stream managers
of clients), and all of that for `async`, also behind a coroutine.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from . import _faults
from ._delivered import Recorder
from ._reading import dig, get
from ._stream_items import is_model

#: Modules of clients whose streams never end without an event.
CLIENTS = ("openai.", "anthropic.", "google.genai.")
#: Where a generator keeps the module that it was written in.
MODULES = (("gi_frame", "f_globals", "__name__"), ("ag_frame", "f_globals", "__name__"))


class Source:
    """An attempt's stream. `advance` answers its next item; who uses it calls `close` or awaits `aclose`, once."""

    __slots__ = ("_closers", "advance", "client", "lazy", "recorder")

    def __init__(self) -> None:
        self.advance: Callable[[], Any] = _nothing
        #: It is the stream of a client that is known.
        self.client = False
        #: It is a generator, of which nothing has run before its first item is asked for.
        self.lazy = False
        #: What can make its items again.
        self.recorder: Recorder | None = None
        #: What closes it, outermost first.
        self._closers: list[Callable[..., Any]] = []

    def open(self, answer: Any) -> None:
        """Takes what a plain function has answered."""
        value: Any = answer
        self.client |= _is_clients(value)
        if is_whole(value):
            raise TypeError(
                f"the function of a stream answered {_named(value)}, which is a whole answer: ask the client for a "
                "stream (`stream=True`)"
            )
        if hasattr(value, "__next__"):
            self._take(value, value.__next__, "close")
        elif hasattr(value, "__iter__"):
            iterator = iter(value)
            self._closers.append(_closer(value, "close"))
            self._take(iterator, iterator.__next__, "close")
        elif hasattr(value, "__enter__"):
            entered = value.__enter__()
            self._closers.append(value.__exit__)
            self.open(entered)
        elif _is_async(value):
            if inspect.iscoroutine(answer):
                answer.close()
            raise TypeError(f"the function of this stream answered {_named(value)}, which is async: use `async for`")
        else:
            raise TypeError(f"the function of a stream answered {_named(value)}; it takes {TAKES}")

    async def aopen(self, answer: Any) -> None:
        """The same for async, in whatever order coroutines, managers and iterators come."""
        value: Any = answer
        while hasattr(value, "__await__"):
            value = await value
        if is_whole(value) or not _is_async(value):
            self.open(value)
            advance = self.advance

            async def anext_() -> Any:
                try:
                    return advance()
                except StopIteration:
                    raise StopAsyncIteration from None

            self.advance = anext_
            return
        self.client |= _is_clients(value)
        if hasattr(value, "__anext__"):
            self._take(value, value.__anext__, *LATER)
        elif hasattr(value, "__aiter__"):
            iterator = aiter(value)
            self._closers.append(_closer(value, *LATER))
            self._take(iterator, iterator.__anext__, *LATER)
        else:
            entered = await value.__aenter__()
            self._closers.append(value.__aexit__)
            await self.aopen(entered)

    def close(self) -> None:
        """Closes the iterator, and then what it came from."""
        closers, self._closers = self._closers, []
        for close in reversed(closers):
            try:
                close(None, None, None) if close.__name__ == "__exit__" else close()
            except Exception as fault:
                _faults.note("close", close, fault)

    async def aclose(self) -> None:
        """The same, awaited."""
        closers, self._closers = self._closers, []
        for close in reversed(closers):
            try:
                closed = close(None, None, None) if close.__name__ in ("__exit__", "__aexit__") else close()
                if isinstance(closed, Awaitable):
                    await closed
            except Exception as fault:
                _faults.note("close", close, fault)

    def _take(self, iterator: Any, advance: Callable[[], Any], *closers: str) -> None:
        generator = inspect.isgenerator(iterator) or inspect.isasyncgen(iterator)
        self.lazy = generator or get(iterator, "_reprieve_lazy") is True
        self.recorder = cast("Recorder | None", get(iterator, "_reprieve_recorder"))
        self._closers.append(_closer(iterator, *closers))
        self.advance = advance


TAKES = "an iterator, an iterable, a client's stream or a context manager of one, or their async forms"


def _nothing() -> Any:
    raise StopIteration


#: What closes an async iterator; `close` of a client's is a coroutine function.
LATER = ("aclose", "close")


def _closer(value: Any, *names: str) -> Callable[[], Any]:
    """What closes it, by the first of these names that it has, if any."""
    return next((close for name in names if callable(close := getattr(value, name, None))), _no_close)


def _no_close() -> None:
    return None


def is_whole(value: object) -> bool:
    """Whether it can be iterated, but is an answer: text, a mapping, a model of pydantic's."""
    return isinstance(value, (str, bytes, Mapping)) or is_model(value)


def _is_async(value: Any) -> bool:
    return any(hasattr(value, name) for name in ("__await__", "__anext__", "__aiter__", "__aenter__"))


def _is_clients(value: Any) -> bool:
    """Whether its class, or the module that its generator was written in, is a known client's."""
    modules = (type(value).__module__, *(dig(value, path) for path in MODULES))
    return any(f"{module}.".startswith(CLIENTS) for module in modules if isinstance(module, str))


def _named(value: object) -> str:
    return f"a {type(value).__qualname__}"
