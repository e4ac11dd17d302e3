"""The options of a call: what is bound to it beside its policy. Functions live here; a policy holds data only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from . import _native
from ._errors import ConfigError
from ._guards import Guards, Run

if TYPE_CHECKING:
    from ._native import Failure
    from .types import CallOptions, Duration, Event, Writable


class Caller(Protocol):
    """What a driver runs for: a policy, or a policy with options bound."""

    _native: _native.Policy
    _options: Options

    @property
    def guards(self) -> Guards: ...


class Meter(Protocol):
    """What a wrapped client knows of a call of its own, and its session does not."""

    def usage(self, value: object) -> dict[str, Any] | None:
        """What an attempt used, read from its value."""

    def priced(self, details: Mapping[str, int], answered: object = None) -> dict[str, Any] | None:
        """The same, from counts of tokens."""

    def timed_out(self) -> Exception | None:
        """The exception of the client's own for an attempt that was cut at its timeout."""

    def hidden(self) -> int:
        """How often the client has retried by itself within the attempt that has just ended."""
        ...


@dataclass(frozen=True)
class Options:
    """Everything that `bind` takes, and what wrapped clients add. `None` leaves a thing as it is."""

    scene: str | None = None
    prompt_version: str | None = None
    trace_id: str | None = None
    seed: int | None = None
    idempotency_key: str | None = None
    classify: Callable[[Exception], str | Failure | None] | None = None
    retry_if: Callable[[Exception, Failure], bool] | None = None
    backoff: Callable[[Failure, int], Duration | None] | None = None
    targets: Mapping[str, Callable[..., Any]] | None = None
    guards: Guards | None = None
    run: Run | None = None
    sink: Callable[[str], object] | Writable | None = None
    on_event: Callable[[dict[str, Any]], object] | None = None
    cancel: Event | None = None
    on_give_up: str | None = None
    unmask: Iterable[str] | None = None
    check: Callable[[Any], object] | None = None
    prepare: Callable[[dict[str, Any], str], object] | None = None
    repair: Mapping[str, Callable[[dict[str, Any], Failure], object]] | None = None
    #: What wrapping a client changed in it; not for `bind`.
    client: str | None = None
    #: What a wrapped client knows of its call; not for `bind`.
    meter: Meter | None = None

    def over(self, policy: _native.Policy, given: CallOptions) -> Options:
        """These options with what is given over them, checked."""
        for name, value in given.items():
            if name not in _CHECKS:
                raise ConfigError(name, value, f"no such option; the options are {', '.join(sorted(_CHECKS))}")
            if value is not None and (allowed := _CHECKS[name](value)):
                raise ConfigError(name, repr(value), allowed)
        for kind in given.get("repair") or ():
            if kind not in REPAIRABLE:
                raise ConfigError(f"repair.{kind}", "a function", f"a kind of failure: {', '.join(REPAIRABLE)}")
        merged = replace(self, **cast("dict[str, Any]", given))
        for target in merged.targets or ():
            if target not in policy.targets:
                raise ConfigError(f"targets.{target}", "a function", f"a target of the policy: {policy.targets}")
        if merged.repair is not None:
            merged = replace(merged, repair=dict(merged.repair))
        if merged.unmask is not None:
            merged = replace(merged, unmask=tuple(merged.unmask))
            _native.mask("", list(merged.unmask or ()))
        return merged

    @property
    def plain(self) -> bool:
        """Nothing here needs to be known before an attempt fails."""
        return all(getattr(self, name) is None for name in _NOT_PLAIN)


_NOT_PLAIN = (
    "trace_id",
    "idempotency_key",
    "guards",
    "run",
    "sink",
    "on_event",
    "cancel",
    "targets",
    "check",
    "prepare",
)

#: The kinds whose failure a changed request may mend: all but decisions to stop.
REPAIRABLE = [kind for kind, category, _, _ in _native.kinds() if category != "control"]


def _text(value: object) -> str | None:
    return None if isinstance(value, str) else "text"


def _function(value: object) -> str | None:
    return None if callable(value) else "a function"


def _trace_id(value: object) -> str | None:
    ok = isinstance(value, str) and len(value) == 32 and set(value) <= set("0123456789abcdef")
    return None if ok else "32 lower-case hexadecimal digits"


def _seed(value: object) -> str | None:
    ok = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64
    return None if ok else "a whole number from 0 to 2**64 - 1"


def _targets(value: object) -> str | None:
    if not isinstance(value, Mapping) or not all(map(callable, cast("Mapping[str, object]", value).values())):
        return "a mapping from target id to function"
    return None


def _repair(value: object) -> str | None:
    ok = isinstance(value, Mapping) and all(map(callable, cast("Mapping[str, object]", value).values()))
    return None if ok else "a mapping from kind of failure to function"


def _sink(value: object) -> str | None:
    return None if callable(value) or callable(getattr(value, "write", None)) else "a function, or an open file"


def _is(kind: type) -> Callable[[object], str | None]:
    return lambda value: None if isinstance(value, kind) else f"a {kind.__name__}"


def _cancel(value: object) -> str | None:
    return None if callable(getattr(value, "is_set", None)) else "an event, such as threading.Event"


def _give_up(value: object) -> str | None:
    return None if value in ("original", "wrapped") else '"original" or "wrapped"'


def _names(value: object) -> str | None:
    return None if isinstance(value, Iterable) and not isinstance(value, str) else "a list of names"


_CHECKS: dict[str, Callable[[object], str | None]] = {
    "scene": _text,
    "prompt_version": _text,
    "trace_id": _trace_id,
    "seed": _seed,
    "idempotency_key": _text,
    "classify": _function,
    "retry_if": _function,
    "backoff": _function,
    "targets": _targets,
    "guards": _is(Guards),
    "run": _is(Run),
    "sink": _sink,
    "on_event": _function,
    "cancel": _cancel,
    "on_give_up": _give_up,
    "unmask": _names,
    "check": _function,
    "prepare": _function,
    "repair": _repair,
}
