"""The vectors of the other topics a second time, as a user of the package meets them: in a call, and as keywords."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from scripted import Scripted, classify, raised_for, retry_if
from vectors import Case, Differs, Hands, Tally, built_as_expected, cases, check, hands, ns, policy_of

import reprieve
from reprieve import ConfigError, Policy
from reprieve._session import Session
from reprieve.testing import VirtualClock

#: Some time in 2023, in milliseconds since 1970.
WALL = 1_700_000_000_000


def delay(case: Case) -> None:
    """The wait after the nth failure of a real call with room for any wait."""
    n = case.get("n", 1)
    room = {"max_attempts": n + 1, "total_timeout": "90d", "max_total_wait": None, "retry_after": {"max": "90d"}}
    policy = policy_of(case).replace(**room)
    told: list[int] = []

    def fails() -> None:
        last = len(told) == n - 1
        wish = {"retry_after": case["retry_after"]} if last and case.get("retry_after") else {}
        raise Scripted({"failure": {"kind": case["kind"], **wish}, "retry_if": True})

    def heard(session: Session, action: Any, tell: Any = Session._told) -> Any:
        if action.kind == "retry":
            told.append(action.after_ns)
        return tell(session, action)

    with pytest.MonkeyPatch.context() as patch, hands(VirtualClock(start=0)):
        patch.setattr(Session, "_told", heard)
        policy.bind(seed=int(case["seed"]), classify=classify, retry_if=retry_if).execute(fails)
    if len(told) != n or told[-1] != ns(case["expect"]):
        raise Differs(f"expected {case['expect']} in the end, the waits are {told}")


def not_delay(case: Case) -> str | None:
    if case.get("previous") or case.get("attempt", 1) != case.get("n", 1):
        return "a call cannot begin in the middle"
    return "a call would make too many attempts" if case.get("n", 1) > 100 else None


def classified(case: Case) -> None:
    """What a call says that fails with such an exception: of its function, its `check`, its stream."""
    evidence = dict(case["evidence"])
    in_check = evidence.pop("in_check", False)
    clock = Hands()
    clock.set(0, evidence.get("wall_now_ms", WALL))
    with hands(clock):
        policy, error = Policy(max_attempts=1, rules=case.get("rules", [])), raised_for({"evidence": evidence})
        if in_check:
            failure = policy.bind(check=lambda _: _raises(error)).execute(lambda: None).failure
        elif evidence.get("in_stream"):
            failure = _streamed(policy, error)
        else:
            failure = policy.execute(_raises, error).failure
    assert failure is not None
    check(case["expect"], json.loads(failure.to_json()))


def _streamed(policy: Policy, error: Scripted) -> Any:
    """What a stream says of an error after its first item, which stops it whatever the kind is."""

    def source() -> Iterator[str]:
        yield "word"
        raise error

    with pytest.raises(reprieve.RetryExhausted) as raised:
        list(policy.bind(on_give_up="wrapped").stream(source))
    return raised.value.failure


def not_classified(case: Case) -> str | None:
    if any(not rule["when"] for rule in case.get("rules", [])):
        return "a rule without a condition: a policy, which holds the rules in Python, refuses it"
    evidence = case["evidence"]
    if evidence.get("cancelled"):
        return "what is no `Exception` is never classified by a driver"
    if evidence.get("error_types") == ["SyntaxError", "Error"]:
        return "JavaScript's own error"
    if "os_code" in evidence:
        return "what has a code of the system has a type in Python, which speaks first"
    if evidence.keys() == {"provider_type"}:
        return "an exception's type says something only beside an answer: a status, a code or a body"
    timeless = "wall_now_ms" not in evidence
    if timeless and reprieve.classify(**evidence) != reprieve.classify(**evidence, wall_now_ms=WALL):
        return "a driver is never without a wall clock"
    return None


def masked(case: Case) -> None:
    """A receipt's message."""
    bound = Policy(max_attempts=1).bind(unmask=case.get("off"))
    seen = bound.execute(_raises, ValueError(case["text"])).trace.receipts[0]["message"]
    if seen != case["expect"]:
        raise Differs(f"expected {case['expect']!r}, saw {seen!r}")


def not_masked(case: Case) -> str | None:
    return None if case["text"] else "an exception without a message shows its type"


def _raises(error: Exception) -> None:
    raise error


def policy(case: Case) -> None:
    """The fields as keywords."""
    built_as_expected(case, lambda case: Policy(**case["policy"]).replace(**case.get("replace", {})))


def not_policy(case: Case) -> str | None:
    if "policy" not in case:
        return "a text or a preset: the raw engine's runner has it"
    error = case["expect"].get("error", {})
    if case.get("unit") == "ms":
        return SECONDS
    if (
        "unit" not in case
        and error.get("field", "").endswith(("timeout", "time", ".base", ".after"))
        and _counts(error["value"])
    ):
        return SECONDS
    return None


SECONDS = "a bare number is a duration in seconds in Python"


def _counts(value: str) -> bool:
    return value.isdigit()


def number(case: Case) -> None:
    """A duration as a policy's field."""
    try:
        built = Policy(max_total_wait=case["text"] if "text" in case else case["number"])
    except ConfigError as error:
        if "error" not in case["expect"]:
            raise
        check("max_total_wait", error.field)
    else:
        seen = json.loads(built.to_json())["max_total_wait"]
        if "ns" not in case["expect"] or ns(seen) != case["expect"]["ns"]:
            raise Differs(f"accepted: {seen}")


def not_number(case: Case) -> str | None:
    return SECONDS if case.get("unit") == "ms" else None


TOPICS = [
    ("delay", delay, not_delay),
    ("classify", classified, not_classified),
    ("mask", masked, not_masked),
    ("policy", policy, not_policy),
    ("number", number, not_number),
]


@pytest.mark.parametrize(("topic", "play", "unplayable"), TOPICS, ids=[topic for topic, *_ in TOPICS])
def test_vectors_through_the_public_surface(
    topic: str,
    play: Callable[[Case], None],
    unplayable: Callable[[Case], str | None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    tally = Tally(topic, "through the public surface")
    for case in cases(topic):
        tally.run(case, play, unplayable(case))
    line = tally.report()
    with capsys.disabled():
        print(f"\n{line}", end="")
