"""Every vector through the raw engine: the native module and the thin classes over it."""

from __future__ import annotations

import json

import pytest
from vectors import (
    Case,
    Differs,
    Hands,
    Raw,
    Tally,
    World,
    built_as_expected,
    cases,
    check,
    hands,
    ns,
    policy_of,
    topics,
)

import reprieve
from reprieve import ConfigError, Policy, _native


def call(case: Case) -> None:
    clock = Hands()
    with hands(clock):
        World(case, clock, Raw.fresh).play()


def delay(case: Case) -> None:
    """The wait after an attempt, when any wait fits."""
    native = policy_of(case)._native
    previous, wish = (ns(case[name]) if case.get(name) else None for name in ("previous", "retry_after"))
    seed, attempt, n = int(case["seed"]), case.get("attempt", 1), case.get("n", 1)
    seen = native.delay_ns(case["kind"], seed, attempt, n, previous_ns=previous, retry_after_ns=wish)
    if seen != ns(case["expect"]):
        raise Differs(f"expected {case['expect']}, saw {seen} ns")


def policy(case: Case) -> None:
    """Read from JSON where a bare number is no duration, as keywords where it is one in seconds."""
    built = built_as_expected(case, read)
    if built is not None and Policy.from_json(built.to_json()) != built:
        raise Differs(f"what is written reads back otherwise: {built.to_json()}")


def read(case: Case) -> Policy:
    if "preset" in case:
        start = Policy.preset(case["preset"])
    elif "text" in case:
        start = Policy.from_json(case["text"])
    elif "unit" in case:
        start = Policy(**case["policy"])
    else:
        start = Policy.from_json(json.dumps(case["policy"]))
    return start.replace(**case["replace"]) if "replace" in case else start


def number(case: Case) -> None:
    expect = case["expect"]
    unit = ns(f"1{case['unit']}") if "unit" in case else 1
    try:
        seen = _native.parse_duration(case["text"] if "text" in case else case["number"], unit)
    except ConfigError as error:
        if expect.get("error", "accepted") not in error.allowed:
            raise
    else:
        if seen != expect.get("ns"):
            raise Differs(f"expected {expect}, saw {seen} ns")


def classify(case: Case) -> None:
    failure = reprieve.classify(policy=Policy(rules=case.get("rules", [])), **case["evidence"])
    check(case["expect"], json.loads(failure.to_json()))


def mask(case: Case) -> None:
    seen = _native.mask(case["text"], case.get("off", []))
    if seen != case["expect"]:
        raise Differs(f"expected {case['expect']!r}, saw {seen!r}")


def stream(case: Case) -> None:
    event = case["event"] if isinstance(case["event"], str) else json.dumps(case["event"])
    check(case["expect"], _native.stream_item(event))
    check(case.get("finishes", _native.stream_finishes(event)), _native.stream_finishes(event))


def unplayable(topic: str, case: Case) -> str | None:
    if topic == "guard":
        return "a machine alone is not exported: Python meets it in a call, as the `call` cases with guards do"
    if topic == "policy" and case.get("unit") == "ms":
        return "a bare number is a duration in seconds in Python"
    if any(not rule["when"] for rule in case.get("rules", [])):
        return "a rule without a condition: a policy, which holds the rules in Python, refuses it"
    return None


PLAY = {
    "call": call,
    "delay": delay,
    "policy": policy,
    "number": number,
    "classify": classify,
    "mask": mask,
    "stream": stream,
}


@pytest.mark.parametrize("topic", sorted(topics()))
def test_vectors_through_the_raw_engine(topic: str, capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(topic, "raw")
    for case in cases(topic):
        tally.run(case, PLAY.get(topic, _unknown), unplayable(topic, case))
    line = tally.report()
    with capsys.disabled():
        print(f"\n{line}", end="")


def _unknown(case: Case) -> None:
    raise Differs("nobody here knows how to play this topic")
