"""How a call starts: what names it, and its machine, with the guards, the run and the outer attempt that bound it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from ._clock import clock
from ._current import Attempt, Ids
from ._errors import ConfigError
from ._json import as_json

if TYPE_CHECKING:
    from ._guards import Guards, Run
    from ._native import Call, Policy
    from ._options import Options


class Started(NamedTuple):
    """A first attempt that the happy path made by itself, and that failed."""

    began: int
    error: Exception
    ids: Ids | None


class Around(NamedTuple):
    """What a call has to do with beside its policy and options."""

    #: The attempt of another call, in which it is made.
    outer: Attempt | None
    guards: Guards | None
    run: Run | None
    #: Its records are kept, also where its first attempt succeeds.
    recorded: bool


def ids_of(options: Options, drawn: Ids | None) -> Ids:
    """What names a call: as its options say, else as it was drawn for its first attempt, else drawn now."""
    ids = drawn or Ids.draw()
    return Ids(
        options.trace_id or ids.trace_id,
        options.idempotency_key or ids.idempotency_key,
        ids.seed if options.seed is None else options.seed,
    )


def call_of(policy: Policy, options: Options, ids: Ids, around: Around, started: Started | None) -> Call:
    """The machine of a call. Raises `ConfigError` where a policy that refuses it is inside of another call."""
    outer, guards, run = around.outer, around.guards, around.run
    common: dict[str, Any] = {
        "ids": as_json(_names(options, ids, outer)),
        "unmask": list(options.unmask or ()),
        "repairs": list(options.repair or ()),
    }
    if started is not None:
        return _native.Call.started(policy, ids.seed, started.began, **common)
    if outer is not None and policy.nested == "refuse":
        raise ConfigError(
            "nested", '"refuse"', f"no outer attempt; this call is inside attempt {outer.number} of a call"
        )
    return _native.Call(
        _capped(policy),
        ids.seed,
        guards=guards._native if guards else None,
        run=run._native if run else None,
        ends_by=outer.ends_by if outer and policy.nested == "bounded" else None,
        recorded=around.recorded,
        heard=options.on_event is not None,
        **common,
    )


def _names(options: Options, ids: Ids, outer: Attempt | None) -> dict[str, str | None]:
    return {
        **({"client": options.client} if options.client else {}),
        "trace_id": ids.trace_id,
        "idempotency_key": ids.idempotency_key,
        "scene": options.scene,
        "prompt_version": options.prompt_version,
        "outer_trace_id": outer.trace_id if outer else None,
    }


def _capped(policy: Policy) -> Policy:
    """The policy, as far as a virtual clock lets it go."""
    most = clock().cap_attempts()
    return policy if most is None else policy.capped(most)
