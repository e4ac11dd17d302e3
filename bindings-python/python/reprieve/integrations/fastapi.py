"""FastAPI and Starlette: a call that stops while a request is served answers 503 with `Retry-After`.

>>> from fastapi import FastAPI
>>> from reprieve.integrations.fastapi import install
>>> app = FastAPI()
>>> install(app)
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.responses import JSONResponse

from .. import _native
from .._errors import ConfigError
from ._stops import stop_of

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ..types import StopReason

__all__ = ["STATUSES", "RetryMiddleware", "install", "response_to"]

#: What each stop reason is answered with. `not_retryable` is not here: what failed then is the request, ours or our
#: caller's, and the application knows which; where it may work later (a quota that comes back), it is 503 as well.
STATUSES: Mapping[StopReason, int] = {
    "attempts_exhausted": 503,
    "retry_after_too_long": 503,
    "wait_exhausted": 503,
    "retry_budget_exhausted": 503,
    "run_budget_exhausted": 503,
    "circuit_open": 503,
    "cooling_down": 503,
    "limited": 503,
    "shed": 503,
    "cancelled": 503,
    "deadline_exceeded": 504,
    "already_delivered": 502,
    "unsafe_to_repeat": 502,
}

logger = logging.getLogger("reprieve")


def install(app: Starlette, statuses: Mapping[StopReason, int] | None = None) -> None:
    """Has an application answer for calls that stop, wherever in a request they do.

    The answer is JSON: `detail` (in words), `reason` and `trace_id`, and in the header `Retry-After` whole seconds,
    rounded up, where the stop knows them. The error is logged as a warning. `statuses` changes rows of `STATUSES`, such
    as `{"shed": 429, "not_retryable": 502}`.

    A response begins with its first bytes, so that a stream which stops before them is answered for as well. What stops
    later, and what no call has raised, goes on as before. Exception handlers of the application come first, but for one
    of `Exception` itself, which Starlette asks last. A mounted application answers for its own errors: install it
    there, too. Functions that are middleware (`@app.middleware("http")`) come after it: inside of them Starlette begins
    a response before its stream has said anything.

    Raises `ConfigError` for an unknown reason or a status below 400.
    """
    app.add_middleware(RetryMiddleware, statuses=statuses)


def response_to(error: BaseException, statuses: Mapping[StopReason, int] | None = None) -> JSONResponse | None:
    """The answer for an error, for exception handlers of one's own; `None` where no call has raised it."""
    stop = stop_of(error)
    if stop is None:
        return None
    status = {**STATUSES, **(statuses or {})}.get(stop.reason, None if stop.resume_in is None else 503)
    if status is None:
        return None
    after = {} if stop.resume_in is None else {"Retry-After": str(max(1, math.ceil(stop.resume_in)))}
    trace_id = stop.trace.trace_id if stop.trace is not None else None
    told = {"detail": _native.says(stop.reason), "reason": stop.reason, "trace_id": trace_id}
    return JSONResponse(told, status, after)


class RetryMiddleware:
    """What `install` adds: `app.add_middleware(RetryMiddleware)`."""

    def __init__(self, app: ASGIApp, statuses: Mapping[StopReason, int] | None = None) -> None:
        self._app = app
        self._statuses = statuses
        for reason, status in (statuses or {}).items():
            if reason not in (*STATUSES, "not_retryable"):
                raise ConfigError("statuses", repr(reason), f"reasons: not_retryable, {', '.join(STATUSES)}")
            if status not in range(400, 600):
                raise ConfigError(f"statuses.{reason}", status, "a status from 400 to 599")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request."""
        start: Message | None = None
        begun = False

        async def sending(message: Message) -> None:
            nonlocal start, begun
            if message["type"] == "http.response.start":
                start = message  # and no more of it until there are bytes: a stream may still stop
                return
            if start is not None and (message.get("body") or not message.get("more_body")):
                begun = True
                await send(start)
                start = None
            if start is None:
                await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            answer = None if begun or scope["type"] != "http" else response_to(error, self._statuses)
            if answer is None:
                raise
            logger.warning("%s %s answered %d: %r", scope["method"], quote(scope["path"]), answer.status_code, error)
            await answer(scope, receive, send)
