"""What the frameworks' files share: a policy that has a target for each model, and one engine that retries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeVar, cast

from .._current import current_attempt
from .._errors import ConfigError
from .._policy import Bound, Policy

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..types import PolicyFields, PresetName

T = TypeVar("T")
#: A policy, one with options bound, the name of a preset, or the fields of a policy.
Rules: TypeAlias = "Bound | PresetName | PolicyFields"


def chain(policy: object, models: int, changed: str) -> Bound:
    """The policy with one target for each model; `changed` tells the records what was done to the framework.

    A policy of one target gets the targets that it lacks: `backup`, `backup_2` and so on. One that names more has to
    name as many as there are models.
    """
    bound = bound_of(policy)
    for name in ("trace_id", "idempotency_key"):
        if getattr(bound._options, name) is not None:
            raise ConfigError(name, "a value for all calls of a model", "nothing here: each call has one of its own")
    options = replace(bound._options, client=changed)
    targets = bound.policy.targets
    if len(targets) == models:
        return Bound(bound.policy, options)
    if len(targets) != 1:
        allowed = f"one for each target of the policy, {', '.join(targets)}; or a policy that names no targets"
        raise ConfigError("models", models, allowed)
    added = ["backup", *(f"backup_{n}" for n in range(2, models))]
    longer = bound.policy.replace(targets=[{"id": target} for target in (*targets, *added)])
    return Bound(longer, options)


def bound_of(policy: object) -> Bound:
    """The policy, whichever way it is given."""
    if isinstance(policy, Bound):
        return policy
    if isinstance(policy, str):
        return Policy.preset(policy)
    if isinstance(policy, Mapping):
        return Policy(**cast("PolicyFields", policy))
    allowed = "a Policy, a bound one, the name of a preset, or the fields of a policy"
    raise ConfigError("policy", repr(policy), allowed)


def off(package: str, *what: str) -> str:
    """What was switched off in the installed version of a package."""
    return f"{package} {version(package)}: {', '.join(what)} -> 0"


def of_target(bound: Bound, models: Sequence[T]) -> T:
    """The model of the attempt under way."""
    attempt = current_attempt()
    assert attempt is not None
    return models[bound.policy.targets.index(attempt.target)]


def listed(field: str, given: Sequence[T], *kinds: type) -> list[T]:
    """What is given, where it is a list of these kinds: the letters of a name are no models."""
    names = " or ".join(kind.__name__ for kind in kinds)
    if isinstance(given, str) or not isinstance(cast("object", given), Sequence):
        raise ConfigError(field, _shown(given), f"a list of {names}, also for a single one")
    for each in given:
        if not isinstance(each, kinds):
            raise ConfigError(field, _shown(each), names)
    return list(given)


def _shown(value: object) -> str:
    """A name as it is; of anything else what it is, which is shorter than all that it holds."""
    kind = type(value).__name__
    return repr(value) if isinstance(value, (str, int)) else f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"


def refuse_retries(name: str, value: object, where: str) -> None:
    """One retry engine is enough: retries beside ours multiply."""
    if value:
        shown = cast("object", getattr(value, "__name__", None)) or repr(value)
        raise ConfigError(name, shown, f"nothing, or 0: the policy retries; leave it out {where}")


def stream_mode(bound: Bound) -> object:
    """What becomes of a stream that breaks, as the policy has it."""
    stream: dict[str, object] = json.loads(bound.policy.to_json()).get("stream") or {}
    return stream.get("mode")


def refuse_redelivery(bound: Bound) -> None:
    """A framework's consumers know no discard event: a stream that begins anew would repeat itself to them."""
    mode = stream_mode(bound)
    if mode in ("restart", "resume"):
        raise ConfigError("stream.mode", f'"{mode}"', '"before_first_item" or "buffered" here')
