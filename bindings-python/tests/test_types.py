"""The types say what the core knows: names and fields are compared with its own."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any, get_args, get_type_hints

import pytest

from reprieve import ConfigError, Policy, _native, classify, types
from reprieve._options import Options


def names_of(literal: Any) -> set[str]:
    return set(get_args(literal))


def fields_of(typed_dict: Any) -> set[str]:
    return set(typed_dict.__annotations__)


def known(fields: dict[str, Any]) -> set[str]:
    """The names that the core lists when it meets one that it does not know."""
    with pytest.raises(ConfigError) as caught:
        Policy(**fields)
    return set(re.findall(r"\w+", caught.value.allowed.partition("are ")[2]))


def test_kinds_and_categories() -> None:
    rows = _native.kinds()
    assert names_of(types.Kind) == {row[0] for row in rows}
    assert names_of(types.Category) == {row[1] for row in rows}


def test_presets() -> None:
    assert names_of(types.PresetName) == set(_native.Policy.preset_names())


def test_stop_reasons() -> None:
    nothing = _native.says("no such reason")
    said = {_native.says(reason) for reason in names_of(types.StopReason)}
    assert nothing not in said
    assert len(said) == len(names_of(types.StopReason))


# `limits` is known and refused until it is built: no type offers it.
NOT_BUILT = {"limits"}


@pytest.mark.parametrize(
    ("where", "typed_dict"),
    [
        ((), types.PolicyFields),
        (("backoff",), types.BackoffFields),
        (("jitter",), types.JitterFields),
        (("retry_after",), types.RetryAfterFields),
        (("kinds", "timeout"), types.KindFields),
        (("rules", 0), types.RuleFields),
        (("rules", 0, "when"), types.WhenFields),
        (("targets", 0), types.TargetFields),
        (("breaker",), types.BreakerFields),
        (("retry_budget",), types.RetryBudgetFields),
        (("cooldown",), types.CooldownFields),
        (("shed",), types.ShedFields),
        (("hedge",), types.HedgeFields),
        (("stream",), types.StreamFields),
    ],
)
def test_fields(where: tuple[str | int, ...], typed_dict: Any) -> None:
    fields: Any = {"no_such": 1}
    for step in reversed(where):
        fields = [fields] if isinstance(step, int) else {step: fields}
    own = fields_of(typed_dict)
    bases = set().union(*(fields_of(base) for base in getattr(typed_dict, "__orig_bases__", ()) if base is not dict))
    assert own | bases == known(fields) - NOT_BUILT


@pytest.mark.parametrize(
    ("typed_dict", "field", "path"),
    [
        (types.BackoffFields, "kind", {"backoff": {"kind": "?"}}),
        (types.JitterFields, "kind", {"jitter": {"kind": "?"}}),
        (types.StreamFields, "mode", {"stream": {"mode": "?"}}),
        (types.PolicyFields, "side_effects", {"side_effects": "?"}),
        (types.PolicyFields, "nested", {"nested": "?"}),
    ],
)
def test_choices(typed_dict: Any, field: str, path: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        Policy(**path)
    listed = set(re.findall(r"[a-z_]+", caught.value.allowed)) - {"one", "of", "or"}
    assert names_of(get_type_hints(typed_dict)[field]) == listed


def test_options() -> None:
    assert fields_of(types.CallOptions) == {field.name for field in dataclasses.fields(Options)} - {"client", "meter"}


def test_evidence() -> None:
    with pytest.raises(ConfigError) as caught:
        classify(no_such=1)  # type: ignore[call-arg]
    listed = caught.value.allowed.rpartition("the fields here are ")[2].split(", ")
    assert set(listed) == fields_of(types.EvidenceFields)


def test_a_written_policy_is_fields() -> None:
    for name in _native.Policy.preset_names():
        assert set(json.loads(Policy.preset(name).to_json())) <= fields_of(types.PolicyFields)
