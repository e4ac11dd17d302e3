"""What the clients of all SDKs have in common once they are wrapped: a plan for all calls, and one call's own side."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from .. import _aio, _driver
from .._current import Attempt, current_attempt
from .._errors import ConfigError
from .._policy import Bound
from .._usage import billed, details_of, main_of
from ._prices import Prices

#: The call whose attempt is under way, for the hooks of a client that are told nothing of it.
CALL: ContextVar[ClientCall | None] = ContextVar("reprieve_client_call", default=None)


class Plan:
    """What a wrapped client shares with everything that derives from it."""

    def __init__(self, owner: Bound, prices: Prices, header: str | None) -> None:
        self.owner = owner
        self.prices = prices
        #: The header that carries the call's idempotency key.
        self.header = header
        #: The clients of other targets, whose own retries are off as well.
        self.clients: dict[str, Any] = {}
        #: What wrapping changed, for the records.
        self.changed = ""
        self._warned = False
        self._readonly: Bound | None = None

    def once(self) -> Plan:
        """The same plan for a client that was told not to retry: one attempt in all."""
        policy = self.owner.policy.replace(max_attempts=1, max_attempts_total=1)
        plan = Plan(Bound(policy, replace(self.owner._options, guards=self.owner.guards)), self.prices, self.header)
        plan.clients, plan.changed = self.clients, self.changed
        return plan

    @property
    def reading(self) -> Bound:
        """For requests that only read (GET): they may be repeated whatever the policy says of side effects."""
        if self._readonly is None:
            policy = self.owner.policy.replace(side_effects="idempotent")
            self._readonly = Bound(policy, replace(self.owner._options, guards=self.owner.guards))
        return self._readonly

    def warn(self, retries: int) -> None:
        """Says once that the client retries by itself."""
        if self._warned:
            return
        self._warned = True
        try:
            warnings.warn(
                f"reprieve: a wrapped client ({self.changed}) made {retries} retries of its own within one attempt: "
                "turn off the retries of its HTTP client or transport, or they multiply with those of the policy",
                RuntimeWarning,
                stacklevel=2,
            )
        except Warning:  # a filter turns warnings into errors; the record says it all the same
            return


class ClientCall:
    """One call of a wrapped client: what it sends, and what its session asks about it."""

    def __init__(self, plan: Plan, owner: Bound, model: object) -> None:
        self.plan = plan
        self.model = model
        #: Makes the SDK's own exception for an attempt that was cut at its timeout.
        self.on_timeout: Callable[[], Exception | None] = lambda: None
        self._owner = owner
        self._sent: Counter[Any] = Counter()
        self._told = 0
        self._reconnects = 0

    @property
    def stream_mode(self) -> str:
        """How the policy wants streams to be retried."""
        return self._owner._native.stream[0]

    # --- running it ---

    def run(self, send: Callable[..., Any], request: Mapping[str, Any], *, client: Any) -> Any:
        """Sends the request until the policy says it is enough. `send` takes the client and the request."""
        return _driver.run(self.bound(send, client), self.attempt(send, client), (), dict(request))

    async def run_async(self, send: Callable[..., Any], request: Mapping[str, Any], *, client: Any) -> Any:
        """The same for a client that is awaited."""
        return await _aio.run(self.bound(send, client), self.attempt_async(send, client), (), dict(request))

    def bound(self, send: Callable[..., Any], client: Any) -> Bound:
        """What a session runs for: the policy and its options, and this call."""
        options = replace(self._owner._options, meter=self, client=self.plan.changed)
        if self.plan.clients:
            attempt = self.attempt if not _is_async(send) else self.attempt_async
            others = {target: attempt(send, other) for target, other in self.plan.clients.items()}
            options = replace(options, targets={**others, **(options.targets or {})})
        return Bound(self._owner.policy, options)

    def attempt(self, send: Callable[..., Any], client: Any) -> Callable[..., Any]:
        """One attempt, as a function of the request."""

        def attempt(**request: Any) -> Any:
            self._begin(request)
            token = CALL.set(self)
            try:
                return send(client, request, _here())
            finally:
                CALL.reset(token)

        return attempt

    def attempt_async(self, send: Callable[..., Any], client: Any) -> Callable[..., Any]:
        """The same for a client that is awaited."""

        async def attempt(**request: Any) -> Any:
            self._begin(request)
            token = CALL.set(self)
            try:
                return await send(client, request, _here())
            finally:
                CALL.reset(token)

        return attempt

    def _begin(self, request: Mapping[str, Any]) -> None:
        self.model = request.get("model") or request.get("modelId") or self.model
        self._sent.clear()
        self._told = self._reconnects = 0

    # --- what its session asks: reprieve._options.Meter ---

    def usage(self, value: object) -> dict[str, Any] | None:
        """Tokens and cost, as far as they are known."""
        return self.priced(details_of(value), getattr(value, "model", None))

    def priced(self, details: Mapping[str, int], answered: object = None) -> dict[str, Any] | None:
        """The same, from counts; `answered` is the model that the answer names."""
        used, tokens = main_of(details), billed(details)
        rate = self.plan.prices.of_model(self.model, answered) if tokens else None
        if used is None or tokens is None or rate is None:
            return used
        return {**used, "cost": rate.cost(tokens), "currency": rate.currency}

    def timed_out(self) -> Exception | None:
        """The SDK's own exception for an attempt that was cut at its timeout."""
        return self.on_timeout()

    def hidden(self) -> int:
        """How often the client retried by itself in the attempt that has just ended."""
        retries = max(max(self._sent.values(), default=1) - 1, self._told) + self._reconnects
        if retries:
            self.plan.warn(retries)
        return retries

    # --- what hooks tell it ---

    def told(self, retries: int) -> None:
        """The client says which retry this request is."""
        self._told = max(self._told, retries)

    def sent(self, request: Any) -> None:
        """A request has gone out; the same one twice is a retry."""
        self._sent[request] += 1

    def watch(self, name: str, info: dict[str, Any]) -> None:
        """Takes the events of httpcore's `trace` extension, which tell what really goes over the wire."""
        if name.endswith("send_request_headers.started"):
            request = info.get("request")
            self.sent((getattr(request, "method", None), str(getattr(request, "url", None))))
        elif name.endswith("receive_response_headers.complete"):
            if _leads_on(info.get("return_value")):
                self._sent.clear()
        elif name.endswith("retry.started"):
            self._reconnects += 1


def heard(call: ClientCall, others: Callable[..., Any] | None) -> Callable[..., Any]:
    """A listener to httpcore's events for a call, beside the one that is there already."""

    def trace(name: str, info: dict[str, Any]) -> None:
        call.watch(name, info)
        if others is not None:
            others(name, info)

    return trace


def heard_async(call: ClientCall, others: Callable[..., Any] | None) -> Callable[..., Any]:
    """The same for clients that are awaited."""

    async def trace(name: str, info: dict[str, Any]) -> None:
        call.watch(name, info)
        if others is not None:
            await others(name, info)

    return trace


def _leads_on(answer: Any) -> bool:
    """Whether an answer (version, status, ...) asks for another request: a redirect, or a challenge to authenticate."""
    try:
        status = answer[1]
    except (TypeError, IndexError):
        return False
    return status in (401, 407) or status in range(300, 400)


def _here() -> Attempt:
    attempt = current_attempt()
    assert attempt is not None
    return attempt


def _is_async(function: Callable[..., Any]) -> bool:
    return bool(function.__code__.co_flags & 0x80)


def lowered(own: Any, attempt: Attempt, make: Callable[..., Any]) -> Any:
    """A client's timeouts (one number, `None`, or httpx's four) with none beyond what the attempt has."""
    names = ("connect", "read", "write", "pool")
    parts = {name: getattr(own, name) if hasattr(own, "read") else own for name in names}
    bounds = {"connect": attempt.connect_timeout, "read": attempt.read_timeout}
    most = {name: bounds.get(name, attempt.timeout) for name in names}
    new = {name: most[name] if parts[name] is None else min(parts[name], most[name]) for name in names}
    return own if new == parts else make(**new)


def in_range(package: str, low: tuple[int, ...], high: int) -> str:
    """The version of a package, which must be from `low` up and below major version `high`."""
    from importlib.metadata import version  # slow to import, and of no use before a client is wrapped

    found = version(package)
    numbers = tuple(int(part) for part in found.split(".")[:2] if part.isdigit())
    if not low <= numbers < (high,):
        wanted = ".".join(map(str, low))
        raise ConfigError(
            "client",
            f"one of {package} {found}",
            f"versions of {package} from {wanted} up and below {high}: install one, or put the policy around the "
            "function that calls the client",
        )
    return found


def refuse_retries(field: str, value: object) -> None:
    """No client that is wrapped has retries beside its policy's."""
    raise ConfigError(
        field,
        repr(value),
        "0 (one attempt) on a wrapped client, because its retries are its policy's: set max_attempts in the policy, "
        "or wrap another client with another policy",
    )


def named_like(base: type, made: type) -> type:
    """The class under the name of the one that it stands for."""
    made.__module__, made.__name__, made.__qualname__ = base.__module__, base.__name__, base.__qualname__
    made.__doc__ = base.__doc__
    return made


def module_of(package: str) -> Any:
    """A module that the user has imported already."""
    return sys.modules[package]
