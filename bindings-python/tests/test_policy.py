"""What a policy takes, what it refuses and how it says so; what `bind` checks."""

from __future__ import annotations

import functools
import json
import math
import pickle
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

import pytest
from failing import Script, fails

from reprieve import AsyncStream, Breaker, ConfigError, Guards, Policy, Run, Stream

PRESETS = [
    "interactive",
    "batch",
    "reasoning",
    "router",
    "guard",
    "tool",
    "llm",
    "chat_model",
    "aws_standard",
    "single",
]


# --- durations and numbers ---


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (30, "30s"),
        (0.3, "300ms"),
        (0.1 + 0.2, "300ms"),
        (1e-9, "1ns"),
        ("1.5s", "1s500ms"),
        ("2m", "2m"),
        (timedelta(microseconds=1), "1us"),
        (timedelta(days=1, microseconds=1), "1d1us"),
        (timedelta(days=90), "90d"),
    ],
)
def test_durations_are_seconds_timedeltas_or_text_to_the_nanosecond(given: Any, written: str) -> None:
    policy = Policy(attempt_timeout=given)
    assert policy == Policy(attempt_timeout=written)
    assert (
        json.loads(policy.to_json())["attempt_timeout"]
        == json.loads(Policy(attempt_timeout=written).to_json())["attempt_timeout"]
    )


def test_a_timedelta_is_exact_where_its_seconds_are_not() -> None:
    odd = timedelta(days=89, microseconds=1)
    assert Policy(attempt_timeout=odd) != Policy(attempt_timeout=timedelta(days=89))
    assert Policy(attempt_timeout=odd) == Policy(attempt_timeout=f"{89 * 86_400_000_000 + 1}us")


@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        math.inf,
        -math.inf,
        -1,
        -0.001,
        0,
        True,
        False,
        10**400,
        "30",
        "30 s",
        "",
        "-1s",
        "\ud800",
        timedelta(seconds=-1),
        timedelta(days=91),
        [],
        object(),
    ],
)
def test_what_is_no_duration_is_refused(bad: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Policy(attempt_timeout=bad)
    assert caught.value.field == "attempt_timeout"
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "3", None, math.nan, 10**9])
def test_what_is_no_count_is_refused(bad: Any) -> None:
    with pytest.raises(ConfigError, match=r"^max_attempts: .* is not allowed; it takes a whole number from 1"):
        Policy(max_attempts=bad)


# --- errors say where, what and what instead ---


@pytest.mark.parametrize(
    ("fields", "field", "value", "allowed"),
    [
        ({"max_attemps": 3}, "max_attemps", "3", "max_attempts"),
        ({"retry_on": ["timeout", "nope"]}, "retry_on[1]", '"nope"', "rate_limit"),
        ({"retry_on": ["cancelled"]}, "retry_on[0]", '"cancelled"', "timeout"),
        ({"kinds": {"nope": {}}}, "kinds.nope", "", "timeout"),
        ({"targets": [{"id": "a"}, {"id": "a"}]}, "targets[1].id", '"a"', "no other target"),
        ({"backoff": {"base": 5, "max": 1}}, "backoff.max", "1", "at least the base"),
        ({"jitter": {"kind": "proportional", "ratio": 1.5}}, "jitter.ratio", "1.5", "0 to 1"),
        ({"jitter": {"kind": "odd"}}, "jitter.kind", '"odd"', "full"),
        ({"total_timeout": 0}, "total_timeout", "0", ""),
        ({"nested": "maybe"}, "nested", '"maybe"', "bounded"),
        ({"side_effects": 3}, "side_effects", "3", "unsafe"),
        ({"limits": {"concurrency": 2}}, "limits", "", "not built"),
        ({"hedge": {"max": 1}}, "hedge.after", "null", "a number of seconds"),
        ({"hedge": {"after": 1}, "side_effects": "unsafe"}, "hedge", "", "leave hedge out"),
    ],
)
def test_config_error_names_field_value_and_what_is_allowed(fields: Any, field: str, value: str, allowed: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Policy(**fields)
    error = caught.value
    assert error.field == field
    assert value in str(error.value)
    assert allowed in error.allowed
    assert str(error) == f"{error.field}: {error.value} is not allowed; it takes {error.allowed}"


def test_config_error_crosses_processes() -> None:
    with pytest.raises(ConfigError) as caught:
        Policy(max_attempts=0)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.field, str(copy)) == ("max_attempts", str(caught.value))


@pytest.mark.parametrize("cycle", ["d = {}; d['kinds'] = d; Policy(kinds=d)", "d = []; d.append(d); Policy(targets=d)"])
def test_a_field_that_holds_itself_is_refused_and_not_a_crash(cycle: str) -> None:
    code = f"from reprieve import *\ntry: {cycle}\nexcept ConfigError: raise SystemExit(7)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 7


def test_sets_and_tuples_are_lists_and_other_iterables_are_refused() -> None:
    assert Policy(retry_on={"timeout"}) == Policy(retry_on=("timeout",)) == Policy(retry_on=["timeout"])
    with pytest.raises(ConfigError, match="retry_on"):
        Policy(retry_on=(kind for kind in ["timeout"]))
    with pytest.raises(ConfigError, match="retry_on"):
        Policy(retry_on="timeout")


def test_a_skill_without_a_manifest_is_refused() -> None:
    with pytest.raises(ConfigError, match="skill"):
        Policy.for_skill("a", {"b": {}})


def test_a_skill_chain_is_one_level() -> None:
    manifests = {
        "a": {"fallback_skill_id": "b", "timeout_per_call": 10},
        "b": {"fallback_skill_id": "c"},
        "c": {},
    }
    assert Policy.for_skill("a", manifests).targets == ["a", "b"]
    with pytest.raises(ConfigError):
        Policy.for_skill("a", {"a": {"fallback_skill_id": "gone"}})


# --- one value, many forms ---


@pytest.mark.parametrize("name", PRESETS)
def test_json_pickle_and_hash_keep_a_preset(name: str) -> None:
    policy = Policy.preset(name)
    for same in (Policy.from_json(policy.to_json()), pickle.loads(pickle.dumps(policy)), policy.replace()):
        assert same == policy
        assert hash(same) == hash(policy)
    assert len({policy, Policy.preset(name)}) == 1
    assert policy != Policy(max_attempts=9)
    assert policy != policy.to_json()


def test_an_unknown_preset_names_the_known() -> None:
    with pytest.raises(ConfigError, match="interactive, batch, reasoning"):
        Policy.preset("interactiv")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"total_timeout": 3}',
        '{"max_attempts": 1, "max_attempts": 2}',
        '{"x": 1}',
        "\ud800",
        "[" * 5000,
    ],
)
def test_damaged_json_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError):
        Policy.from_json(text)


def test_replace_changes_what_is_named_and_leaves_the_original() -> None:
    policy = Policy(max_attempts=5, backoff={"base": 2, "max": 10})
    other = policy.replace(backoff={"max": 20})
    assert other == Policy(max_attempts=5, backoff={"base": 2, "max": 20})
    assert policy == Policy(max_attempts=5, backoff={"base": 2, "max": 10})
    with pytest.raises(ConfigError, match=r"backoff\.max"):
        policy.replace(backoff={"max": 1})


def test_a_policy_takes_no_attributes_that_would_mean_nothing() -> None:
    with pytest.raises(AttributeError):
        Policy().max_attempts = 5  # type: ignore[attr-defined]


def test_a_subclass_stays_one() -> None:
    class Ours(Policy):
        pass

    assert type(Ours.preset("batch")) is type(Ours().replace(max_attempts=2)) is type(Ours.from_json("{}")) is Ours


def test_two_threads_never_make_two_sets_of_guards() -> None:
    policy, seen = Policy.preset("llm"), []
    threads = [threading.Thread(target=lambda: seen.append(policy.guards)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, seen))) == 1


# --- what can be run ---


def generator() -> Any:
    yield 1


async def async_generator() -> Any:
    yield 1


class GeneratorCall:
    def __call__(self) -> Any:
        yield 1


class Holder:
    def method(self) -> Any:
        yield 1


@pytest.mark.parametrize(
    "function",
    [
        generator,
        async_generator,
        GeneratorCall(),
        Holder().method,
        functools.partial(generator),
        functools.partial(functools.partial(async_generator)),
        functools.partial(GeneratorCall()),
        staticmethod(generator),
        classmethod(generator),
    ],
)
def test_generator_functions_are_decorated_into_streams(function: Any) -> None:
    for use in (Policy(), Policy().bind(scene="s"), Breaker()):
        decorated = use(function)
        unbound = decorated.__func__ if isinstance(decorated, (classmethod, staticmethod)) else decorated
        stream = unbound()
        assert isinstance(stream, (Stream, AsyncStream))
        assert stream.attempts == 0


@pytest.mark.parametrize("use", ["execute", "start"])
def test_generators_are_refused_where_a_value_is_awaited(use: str) -> None:
    with pytest.raises(TypeError, match=r"policy\.stream"):
        getattr(Policy(), use)(generator)


@pytest.mark.parametrize("use", ["call", "execute", "start", "__call__"])
def test_generators_are_refused_as_targets_of_plain_functions(use: str) -> None:
    bound = Policy.preset("llm").bind(targets={"backup": generator})
    with pytest.raises(TypeError, match=r"policy\.stream"):
        getattr(bound, use)(int)


@pytest.mark.parametrize("thing", [None, 3, "f", object()])
def test_what_cannot_be_called_is_refused(thing: Any) -> None:
    with pytest.raises(ConfigError, match="function"):
        Policy()(thing)


# --- options ---


@pytest.mark.parametrize(
    ("option", "bad"),
    [
        ("scene", 3),
        ("prompt_version", 1.5),
        ("trace_id", "xyz"),
        ("trace_id", "A" * 32),
        ("trace_id", "a" * 31),
        ("seed", -1),
        ("seed", 2**64),
        ("seed", True),
        ("seed", 1.0),
        ("idempotency_key", 3),
        ("classify", "f"),
        ("retry_if", 1),
        ("backoff", 2.5),
        ("targets", [len]),
        ("targets", {"primary": 3}),
        ("guards", object()),
        ("run", "run"),
        ("sink", "path.jsonl"),
        ("on_event", []),
        ("cancel", object()),
        ("on_give_up", "raise"),
        ("unmask", "ids"),
        ("unmask", ["everything"]),
        ("tracer", 1),
    ],
)
def test_options_are_checked_when_they_are_bound(option: str, bad: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Policy().bind(**{option: bad})
    assert caught.value.field == option


def test_functions_for_targets_that_the_policy_has_not_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"targets\.backup"):
        Policy().bind(targets={"backup": len})


def test_bound_options_add_up_and_none_takes_one_back() -> None:
    lines: list[str] = []
    bound = Policy().bind(scene="a", sink=lines.append).bind(prompt_version="v1")
    bound.call(fails(0))
    assert {(json.loads(line)["scene"], json.loads(line)["prompt_version"]) for line in lines} == {("a", "v1")}
    bound.bind(sink=None).call(fails(0))
    assert len(lines) == 2


def test_a_bound_policy_crosses_processes_where_its_options_do() -> None:
    bound = Policy(max_attempts=2).bind(scene="s", on_give_up="wrapped", guards=Guards())
    copy = pickle.loads(pickle.dumps(bound))
    assert copy.policy == bound.policy
    assert copy._options.scene == "s"


def test_options_are_bound_and_never_taken_from_the_arguments() -> None:
    function = Script("ok")
    Policy().call(function, "a", seed=1, scene="x", self=2, function=3, owner=4, args=5, kwargs=6)
    assert function.calls == [
        (("a",), {"seed": 1, "scene": "x", "self": 2, "function": 3, "owner": 4, "args": 5, "kwargs": 6})
    ]


# --- runs are configuration too ---


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("attempts", -1),
        ("attempts", True),
        ("attempts", 1.5),
        ("attempts", 2**70),
        ("tokens", "9"),
        ("cost", "9"),
        ("cost", math.nan),
        ("cost", -1),
        ("cost", True),
        ("estimate_cost", math.inf),
        ("deadline", -1),
        ("deadline", math.nan),
        ("deadline", timedelta(seconds=-1)),
        ("deadline", True),
        ("deadline", "soon"),
    ],
)
def test_run_limits_are_checked(field: str, bad: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Run(**{field: bad})
    assert caught.value.field == field
