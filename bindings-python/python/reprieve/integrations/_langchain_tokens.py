"""Tokens that reach somebody while a LangChain model is merely invoked: through the callbacks of `astream_events`, of a
graph's `stream_mode="messages"`, of a handler that prints them. After them an answer must not begin anew."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers import BaseTracer
from langchain_core.tracers.context import register_configure_hook

from .._current import Attempt, current_attempt

_TOKENS: ContextVar[Tokens | None] = ContextVar("reprieve_langchain_tokens", default=None)


class Tokens(BaseCallbackHandler):
    """Counts what an attempt has shown."""

    run_inline = True

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **_: Any) -> None:
        message = getattr(chunk, "message", None)
        if token or getattr(message, "tool_call_chunks", None):
            self._attempt.shown += 1

    def on_stream_event(self, event: Any, **_: Any) -> None:
        if event.get("event") == "content-block-delta":
            self._attempt.shown += 1


# Whatever run begins while the variable is set has the counter among its handlers.
register_configure_hook(_TOKENS, inheritable=True)


@contextmanager
def counted(handlers: Iterable[BaseCallbackHandler]) -> Generator[None]:
    """Counts the tokens of the attempt under way, where one of these handlers shows them to somebody."""
    attempt = current_attempt()
    assert attempt is not None
    token = _TOKENS.set(Tokens(attempt) if any(map(_shows, handlers)) else None)
    try:
        yield
    finally:
        _TOKENS.reset(token)


def _shows(handler: BaseCallbackHandler) -> bool:
    """Tracers keep what they hear for later, but for those that feed a stream of events."""
    if hasattr(handler, "tap_output_iter"):
        return True
    kind = type(handler)
    hears = any(
        getattr(kind, name) is not getattr(BaseCallbackHandler, name)
        for name in ("on_llm_new_token", "on_stream_event")
    )
    return hears and not isinstance(handler, (BaseTracer, Tokens))
