"""What the HTTP layers share: which requests may be sent again, and how a call of requests ends.

A layer is a driver's function: it sends one request and answers with its response. A response with a failing status
is a failure of the attempt, and still what the call ends with when nothing better comes. Nothing here decides.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from .. import _hidden, _native
from .._clock import clock
from .._current import Attempt, current_attempt
from .._errors import AttemptTimeout, CallCancelled, ConfigError, StreamError
from .._native import Action
from .._policy import Bound
from .._reading import MAX_BODY
from .._session import Session
from .._trace import attach
from ._chain import Rules, bound_of
from ._events import Events

#: Methods that may be sent again whatever became of the first try (RFC 9110).
IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "QUERY"})
#: The longest body that is kept: of a request that can be sent once, and of a response that announces its length.
MAX_KEPT = 1024 * 1024
#: How much is read from a file at a time.
CHUNK = 64 * 1024
#: How much of a stream is looked at for its last event.
TAIL = 2048
#: What a stream of a client can be told: it takes no discards, and resumes nothing.
MODES = ("before_first_item", "buffered")


class StatusFailure(Exception):
    """An attempt's response had a failing status. What `classify`, `retry_if` and `backoff` of a layer are given:
    `response` is the client's own, `status_code` and `body` (decoded, at most 1 MiB) are what it said."""

    def __init__(
        self,
        response: Any,
        status: int,
        headers: Iterable[tuple[str, str]],
        body: bytes | None,
        fault: StreamError | None = None,
    ) -> None:
        super().__init__(str(fault or f"the response has status {status}"))
        self.response = response
        #: What is wrong with a stream of events under a status that says success.
        self.fault = fault
        self.status_code = status
        self.headers = list(headers)
        self.body = body


class Exchange(Session):
    """A call whose attempts are requests. A response whose body is still to come leaves it in flight, until the body
    is over."""

    #: A response that has come too late would have to be read or closed by somebody.
    hedges = False

    def __init__(self, owner: Bound, method: str) -> None:
        super().__init__(owner, recorded=True)
        self.method = method
        #: The response of the attempt before, which is still to be closed: it failed, or `check` has refused it.
        self.unclosed: Any = None
        #: The latest response was fine: what goes wrong from here on, goes wrong in its body.
        self.in_body = False
        #: Its body is not whole yet.
        self.open = False
        #: Chunks of it that have reached the consumer, and the last bytes of them.
        self.delivered = 0
        self._tail = b""

    def attempt(self, action: Action) -> Attempt:
        """The next attempt: nothing of the one before is its."""
        self.in_body = self.open = False
        self.delivered = 0
        return super().attempt(action)

    def succeeded(self, value: Any) -> Action:
        """The attempt under way has a response: whole, or with its first bytes."""
        self.unclosed = None
        if not self.open:
            return super().succeeded(value)
        self.hide()
        self.value, self.error = value, None
        self.call.first_item(clock().now(), self.number)
        return cast("Action", _Open())

    @property
    def idempotency_key(self) -> str:
        """The same for all attempts."""
        return self._ids.idempotency_key

    def opened(self, response: Any, failing: bool, more: bool) -> None:
        """The attempt under way has a response, with more of its body to come or not."""
        self.unclosed, self.open, self.in_body = response, more and not failing, not failing

    def forgotten(self) -> Any:
        """The response of an attempt that has failed, to be closed."""
        response, self.unclosed = self.unclosed, None
        if response is not None:
            self.open = False
        return response

    def conclude(self, action: Any) -> Any:
        """The response that the call ends with, or its exception raised."""
        if action.kind == "open":
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

    def deliver(self, chunk: bytes) -> bytes:
        """The chunk, on its way to the consumer; raises where the call was cancelled meanwhile."""
        if not self.deaf and self.open and self.cancelled():
            self.left()
            raise CallCancelled(f"{self.cancel_reason}; the response was only read in part")
        self.heard()
        self.delivered += 1
        self._tail = chunk if len(chunk) >= TAIL else (self._tail + chunk)[-TAIL:]
        return chunk

    def heard(self) -> None:
        """Bytes have come: a stream around this layer is told, whose client may hide them."""
        if self._outer is not None:
            self._outer.heard()

    def left(self) -> None:
        """Whoever read the body has left before its end: clients of models do that at the last event of a stream."""
        if self.open and _ends(self._tail):
            self.ended()
        elif self.open:
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
        if isinstance(error, StatusFailure) and error.fault is not None:
            return {**fault_evidence(error.fault), "wall_now_ms": evidence["wall_now_ms"]}
        return {**evidence, "in_stream": True} if self.in_body else evidence

    def advice(self, reason: str) -> str:
        if reason != "unsafe_to_repeat":
            return ""
        return f"; to have a {self.method} sent again, name it in `methods`, or send an Idempotency-Key"


def fault_evidence(fault: StreamError) -> dict[str, Any]:
    """What the core is told of a stream of events that failed."""
    evidence: dict[str, Any] = {"status": 200, "message": str(fault), "in_stream": fault.code != "empty_answer"}
    if fault.event is not None:
        evidence["body"] = fault.event
    if fault.code is not None:
        evidence["provider_code"] = fault.code
    return evidence


def _ends(tail: bytes) -> bool:
    """Whether a body that ends in these bytes is a stream of events whose last one says that it is over."""
    lines = [line[5:].strip() for line in tail[-TAIL:].splitlines() if line.startswith(b"data:")]
    return bool(lines) and _native.stream_item(lines[-1].decode("utf-8", "replace")) in ("end", "content_end")


class _Open(NamedTuple):
    """The attempt has a response, and its body is still to come."""

    kind: str = "open"


class Layer:
    """A policy for requests, checked."""

    def __init__(self, policy: Rules, methods: Iterable[str], idempotency_header: str | None, max_body: int) -> None:
        bound = bound_of(policy)
        if isinstance(methods, str):
            raise ConfigError("methods", repr(methods), f'names of methods, such as ["{methods}"]')
        if not isinstance(cast("object", idempotency_header), (str, type(None))):
            raise ConfigError("idempotency_header", repr(idempotency_header), 'a header\'s name: "Idempotency-Key"')
        if isinstance(max_body, bool) or not isinstance(cast("object", max_body), int) or max_body < 0:
            raise ConfigError("max_body", repr(max_body), "a whole number of bytes, from 0")
        fields: dict[str, Any] = json.loads(bound.policy.to_json())
        self.mode: str = fields.get("stream", {}).get("mode", MODES[0])
        if self.mode not in MODES:
            raise ConfigError(
                "stream.mode", f'"{self.mode}"', f"{' or '.join(MODES)} here: a response takes nothing back"
            )
        if fields.get("hedge") is not None:
            raise ConfigError("hedge", json.dumps(fields["hedge"]), "null here: hedge the function that sends requests")
        _check_targets(bound)
        self._header = idempotency_header
        self.methods = IDEMPOTENT | {method.upper() for method in methods}
        self.max_body = max_body
        self._repeating = bound
        unsafe = bound.policy.replace(side_effects="unsafe")
        #: The same for requests that must not have an effect twice, with the very same guards.
        self._unsafe = Bound(unsafe, replace(bound._options, guards=bound.guards))

    def exchange(self, method: str, headers: MutableMapping[str, Any]) -> Exchange:
        """A new call for a request, which gets the call's idempotency key where that is asked for."""
        _hidden.report(headers)
        method, header = method.upper(), self._header
        keyed = header is not None or headers.get("idempotency-key")
        exchange = Exchange(self._repeating if keyed or method in self.methods else self._unsafe, method)
        if header is not None and not headers.get(header):
            headers[header] = exchange.idempotency_key
        return exchange

    def to_read(self, status: int, headers: Mapping[str, Any]) -> int | None:
        """How much of a body is read before the attempt counts: as many bytes, `None` for all of it, zero for the
        first that come."""
        if status >= 400:
            return MAX_BODY
        if self.mode == "buffered":
            return None
        length = str(headers.get("content-length") or "")
        short = length.isascii() and length.isdigit() and int(length) <= self.max_body
        return None if short else 0

    def held(self, exchange: Exchange, status: int, headers: Mapping[str, Any], *, plain: bool) -> Held:
        """For what is read of a response within its attempt. `plain`: its bytes are not compressed."""
        events = None
        if plain and status < 400 and str(headers.get("content-type") or "").startswith("text/event-stream"):
            events = Events(subscribed=exchange.method.upper() == "GET")
        return Held(self.to_read(status, headers), attempt_here(), events, exchange.heard)

    def too_long(self, method: str, url: object) -> ConfigError:
        """For a body that can be sent once, and is too long to be kept."""
        return ConfigError(
            f"the body of {method} {url}",
            f"one that can be sent once, of more than {self.max_body} bytes,",
            "bytes, or a file that can be rewound: pass one, raise `max_body`, or send it through a client "
            "without this layer",
        )


def refuse_retries(wrapped: object, retries: object) -> None:
    """Raises `ConfigError` where what a layer wraps tries again by itself."""
    if isinstance(wrapped, RetryLayer):
        raise ConfigError("wrapped", type(wrapped).__name__, "what sends requests: one layer of retries is enough")
    if isinstance(retries, int) and retries > 0:
        raise ConfigError("wrapped", f"{type(wrapped).__name__} with retries of its own ({retries})", "one with none")


class RetryLayer:
    """What transports and adapters that retry have in common."""


class Held:
    """A body as far as it was read: at most so many bytes, and of a response not past the end of its attempt. Of a
    model's events that is up to the first content."""

    def __init__(
        self,
        most: int | None,
        attempt: Attempt | None = None,
        events: Events | None = None,
        heard: Callable[[], None] | None = None,
    ) -> None:
        self._most, self._attempt, self._events, self._heard = most, attempt, events, heard
        self._size = 0
        self.chunks: list[bytes] = []

    def take(self, chunk: bytes) -> bool:
        """Keeps a chunk; whether that is enough."""
        if self._heard is not None:
            self._heard()
        self.chunks.append(chunk)
        self._size += len(chunk)
        late = self._attempt is not None and self._attempt.time_left <= 0
        if self._events is not None:
            known = self._events.read(chunk)
            return self._events.fault is not None or (self._most is not None and (known or late))
        return self._most is not None and (late or self._size > self._most)

    def fault(self, *, more: bool) -> StreamError | None:
        """What is wrong with a stream of events, of which there is more to come or not."""
        if self._events is not None and not more:
            self._events.end()
        return self._events.fault if self._events is not None else None

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
