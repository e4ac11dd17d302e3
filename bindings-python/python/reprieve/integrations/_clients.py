"""SDK clients inside of a framework's models: their own retries off, and their timeouts those of the attempt.

The clients of `openai`, `anthropic` and the SDKs generated like them are known by what they have, so that none of them
is imported.
"""

from __future__ import annotations

from typing import Any, cast

from .._current import Attempt, current_attempt


def is_client(value: object) -> bool:
    """Whether this is a client of such an SDK."""
    return callable(getattr(value, "with_options", None)) and hasattr(value, "max_retries")


def following(client: Any) -> Any:
    """A copy of the client that makes each request once, and gives it no more time than the attempt under way has.

    The copy shares the connections. It is of the same type, as is what derives from it.
    """
    copy = client.with_options(max_retries=0)
    copy.__class__ = _following(type(copy))
    return copy


def following_resource(resource: Any) -> Any:
    """The same for a resource of such a client, `client.chat.completions`; anything else stays as it is."""
    client = getattr(resource, "_client", None)
    return type(resource)(following(client)) if is_client(client) else resource


#: The class of a client, and the one of its copies.
_KINDS: dict[Any, Any] = {}


def _following(kind: Any) -> Any:
    """A subclass whose timeout is the attempt's."""
    if kind in _KINDS.values():
        return kind
    if kind not in _KINDS:
        _KINDS[kind] = _made(kind)
    return _KINDS[kind]


def _made(kind: Any) -> Any:
    def get(client: object) -> Any:
        held = vars(client)
        own: Any = held.get("timeout")
        attempt = current_attempt()
        return own if attempt is None else within(own, attempt)

    def set_own(client: Any, own: Any) -> None:
        vars(client)["timeout"] = own

    body = {"timeout": property(get, set_own), "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), body)


def within(own: Any, attempt: Attempt) -> Any:
    """A client's own timeout where that is shorter, else the attempt's: for each phase, where it tells them apart."""
    if not (hasattr(own, "connect") and hasattr(own, "read")):
        return _least(own, attempt.timeout)
    bounds = {"connect": attempt.connect_timeout, "read": attempt.read_timeout}
    limits = {phase: bounds.get(phase, attempt.timeout) for phase in ("connect", "read", "write", "pool")}
    kind = cast("Any", type(own))
    return kind(**{phase: _least(getattr(own, phase), limit) for phase, limit in limits.items()})


def _least(own: object, limit: float) -> float:
    return min(own, limit) if isinstance(own, (int, float)) else limit
