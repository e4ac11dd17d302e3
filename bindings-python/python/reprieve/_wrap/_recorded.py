"""The streams of `openai` and `anthropic`, which read events of text: each item can be made again from its own."""

# The SDK is not imported here: its objects are of any type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from .._reading import get


def recorded(stream: Any) -> Any:
    """The stream, which notes from now on what its items are made of, where it is built as these are."""
    decoder, process = get(stream, "_decoder"), get(get(stream, "_client"), "_process_response_data")
    if decoder is not None and callable(process):
        stream._decoder = stream._reprieve_recorder = Recorder(decoder, process, stream._cast_to, stream.response)
    return stream


class Recorder:
    """Stands between a stream and its decoder."""

    def __init__(self, decoder: Any, process: Callable[..., Any], cast_to: Any, response: Any) -> None:
        self._decoder, self._process, self._cast_to, self._response = decoder, process, cast_to, response
        #: What the event said that has come last: an item is made of it, if any.
        self.text = ""
        self.noting = self.mute = False

    def iter_bytes(self, chunks: Iterator[bytes]) -> Iterator[Any]:
        """The decoder's events."""
        for event in self._decoder.iter_bytes(chunks):
            self.text = event.data
            yield event

    async def aiter_bytes(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        """The same for a client that is awaited."""
        async for event in self._decoder.aiter_bytes(chunks):
            self.text = event.data
            yield event

    def make(self, text: str, /) -> Any:
        """The item of an event, made as the client makes it."""
        return self._process(data=json.loads(text), cast_to=self._cast_to, response=self._response)
