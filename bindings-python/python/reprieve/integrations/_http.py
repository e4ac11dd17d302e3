"""What the HTTP layers share: which requests may be sent again, and how a call of requests ends.

A layer is a driver's function: it sends one request and answers with its response. A response with a failing status
is a failure of the attempt, and still what the call ends with when nothing better comes. Nothing here decides.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from .. import _hidden
from .._clock import clock
from .._current import Attempt, current_attempt
from .._errors import AttemptTimeout, CallCancelled, ConfigError
from .._native import Action, Failure
from .._policy import Bound, Policy
from .._reading import MAX_BODY
from .._session import Session
from .._trace import Trace, attach

#: Methods that may be sent again whatever became of the first try (RFC 9110).
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"})
#: How much of a body that can be sent once is kept, and of a response that announces its length read ahead: 1 MiB.
BUFFER_LIMIT = 1024 * 1024
#: How much is read from a file at a time.
CHUNK = 64 * 1024
#: What a stream of a client can be told: it takes no discards, and resumes nothing.
MODES = ("before_first_item", "buffered")


class StatusFailure(Exception):
    """An attempt's response had a failing status. What `classify`, `retry_if` and `backoff` of a layer are given:
    `response` is the client's own, `status_code` and `body` (decoded, at most 1 MiB) are what it said."""

    def __init__(self, response: Any, status: int, headers: Iterable[tuple[str, str]], body: bytes | None) -> None:
        super().__init__(f"the response has status {status}")
        self.response = response
        self.status_code = status
        self.headers = list(headers)
        self.body = body


class Exchange(Session):
    """A call whose attempts are requests. A response whose body is still to come leaves it in flight, until the body
    is over."""

    def __init__(self, owner: Bound, method: str) -> None:
        super().__init__(owner, recorded=True)
        self._method = method
        #: The failing response that nobody has closed yet.
        self.unclosed: Any = None
        #: The latest response was fine: what goes wrong from here on, goes wrong in its body.
        self.in_body = False
        #: Its body is not whole yet.
        self.open = False
        #: Chunks of it that have reached the consumer.
        self.delivered = 0

    def succeeded(self, value: Any) -> Action:
        """The attempt under way has a response: whole, or with its first bytes."""
        if not self.open:
            return super().succeeded(value)
        self.hide()
        self.value, self.error = value, None
        self.call.first_item(clock().now())
        return cast("Action", _Open())

    def conclude(self, action: Any) -> Any:
        """The response that the call ends with, or its exception raised."""
        if self.open:
            attach(self.value, self.trace())
            return self.value
        try:
            if action.kind == "done":
                attach(self.value, self.trace())
                return self.value
            error = self.give_up(action)
            if not isinstance(error, StatusFailure):
                raise error
            attach(error.response, self.trace())
            self.unclosed = None
            return error.response
        finally:
            self.close()

    def ended(self) -> None:
        """The body is whole."""
        if self.open:
            self.open = False
            self._over(lambda: super(Exchange, self).succeeded(self.value))

    def left(self) -> None:
        """Whoever read the body has left before its end."""
        if self.open:
            self.open = False
            self._over(self.stopped_outside)

    def broke(self, error: Exception) -> Exception:
        """The body broke after some of it was delivered: the error to raise."""
        if not self.open:
            return error
        self.open = False
        response, given_up = self.value, error
        self.error = error

        def fail() -> None:
            nonlocal given_up
            given_up = self.give_up(self._outcome(self._outcome_of(error)))

        self._over(fail)
        attach(response, self.trace())
        return given_up

    def close(self) -> None:
        """Lets go of the response, too, which leads back here."""
        super().close()
        self.value = None

    def check_cancelled(self) -> None:
        """Raises where the call was cancelled while its body was read."""
        if not self.deaf and self.open and self.cancelled():
            self.left()
            raise CallCancelled(f"{self.cancel_reason}; the response was only read in part")

    def _over(self, end: Callable[[], object]) -> None:
        try:
            end()
            attach(self.value, self.trace())
        finally:
            self.close()

    def _outcome_of(self, error: Exception) -> dict[str, Any]:
        outcome = super()._outcome_of(error)
        return {**outcome, "delivered": self.delivered} if self.delivered else outcome

    def _evidence_of(self, error: Exception) -> dict[str, Any]:
        evidence = super()._evidence_of(error)
        return {**evidence, "in_stream": True} if self.in_body else evidence

    def _note(self, action: Action, trace: Trace, failure: Failure | None) -> str:
        note = super()._note(action, trace, failure)
        if action.reason == "unsafe_to_repeat":
            note += f"; to have a {self._method} sent again, name it in `methods`, or send an Idempotency-Key"
        return note


class _Open(NamedTuple):
    """The attempt has a response, and its body is still to come."""

    kind: str = "open"


class Layer:
    """A policy for requests, checked."""

    def __init__(self, policy: Bound | str, methods: Iterable[str], buffer_limit: int) -> None:
        bound = Policy.preset(policy) if isinstance(policy, str) else policy
        if not isinstance(cast("object", bound), Bound):
            raise ConfigError("policy", repr(policy), "a Policy, one with bound options, or the name of a preset")
        if isinstance(methods, str):
            raise ConfigError("methods", repr(methods), f'names of methods, such as ["{methods}"]')
        if isinstance(buffer_limit, bool) or not isinstance(cast("object", buffer_limit), int) or buffer_limit < 0:
            raise ConfigError("buffer_limit", repr(buffer_limit), "a whole number of bytes, from 0")
        fields: dict[str, Any] = json.loads(bound.policy.to_json())
        self.mode: str = fields.get("stream", {}).get("mode", MODES[0])
        if self.mode not in MODES:
            raise ConfigError(
                "stream.mode", f'"{self.mode}"', f"{' or '.join(MODES)} here: a response takes nothing back"
            )
        _check_targets(bound)
        self.methods = IDEMPOTENT | {method.upper() for method in methods}
        self.buffer_limit = buffer_limit
        self._repeating = bound
        unsafe = bound.policy.replace(side_effects="unsafe")
        #: The same for requests that must not have an effect twice, with the very same guards.
        self._unsafe = Bound(unsafe, replace(bound._options, guards=bound.guards))

    def exchange(self, method: str, headers: Mapping[str, Any]) -> Exchange:
        """A new call for a request."""
        _hidden.report(headers)
        method = method.upper()
        repeats = method in self.methods or bool(headers.get("idempotency-key"))
        return Exchange(self._repeating if repeats else self._unsafe, method)

    def to_read(self, status: int, headers: Mapping[str, Any]) -> int | None:
        """How much of a body is read before the attempt counts: as many bytes, `None` for all of it, zero for the
        first that come."""
        if status >= 400:
            return MAX_BODY
        if self.mode == "buffered":
            return None
        length = str(headers.get("content-length") or "")
        short = length.isascii() and length.isdigit() and int(length) <= self.buffer_limit
        return None if short else 0

    def too_long(self, method: str, url: object) -> ConfigError:
        """For a body that can be sent once, and is too long to be kept."""
        return ConfigError(
            f"the body of {method} {url}",
            f"one that can be sent once, of more than {self.buffer_limit} bytes,",
            "bytes, or a file that can be rewound: pass one, raise `buffer_limit`, or send it through a client "
            "without this layer",
        )


class Held:
    """A body as far as it was read."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._size = 0
        self.chunks: list[bytes] = []

    def take(self, chunk: bytes) -> bool:
        """Keeps a chunk; whether that is enough."""
        self.chunks.append(chunk)
        self._size += len(chunk)
        return self._most is not None and self._size > self._most

    @property
    def whole(self) -> bytes:
        """All of it in one."""
        return b"".join(self.chunks)


def attempt_here() -> Attempt:
    """The attempt that a layer's function makes."""
    attempt = current_attempt()
    assert attempt is not None
    return attempt


def at_most(own: float | None, seconds: float) -> float:
    """A client's own timeout, lowered to what the attempt may take."""
    return seconds if own is None else min(own, seconds)


def is_timeout(error: BaseException) -> bool:
    """It was our driver that cut the attempt: the client has a timeout of its own for that."""
    return isinstance(error, AttemptTimeout)


def _check_targets(bound: Bound) -> None:
    options = bound._options
    if len(bound.policy.targets) > 1 and not options.targets and getattr(options, "prepare", None) is None:
        raise ConfigError(
            "targets",
            str(bound.policy.targets),
            "one target here, since a request goes where its address says, or a bound `prepare` that changes the "
            "request for its target",
        )
