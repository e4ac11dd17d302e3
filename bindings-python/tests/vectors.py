"""The conformance vectors, as both runners use them: loaded and counted, compared, and a call's steps played.

`tests/vectors/README.md` says what the words mean. A runner plays every case of the index or says why it does not:
the reasons are printed and counted, and a count that differs fails.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

from reprieve import Action, Call, ConfigError, Guards, MisuseError, Policy, Run, _clock
from reprieve.testing import VirtualClock

Case = dict[str, Any]

VECTORS = Path(__file__).parents[2] / "tests" / "vectors"

VERBS = ("success", "failure", "evidence", "call", "snapshot", "restore", "report", "run_cancel", "first_item")


class Differs(Exception):
    """A case went otherwise than it says."""


def cases(topic: str) -> list[Case]:
    """The cases of a topic, from every file the index lists; counts, topics and ids of all files are checked."""
    ids: set[str] = set()
    found: list[Case] = []
    for entry in _read("index.json")["files"]:
        name, file = entry["file"], _read(entry["file"])
        assert len(file["cases"]) == entry["cases"], f"{name}: the index counts otherwise"
        assert file["topic"] == entry["topic"], f"{name}: the index names another topic"
        for case in file["cases"]:
            assert case["id"] not in ids, f"{name}: the id {case['id']} is taken"
            ids.add(case["id"])
        if entry["topic"] == topic:
            found += file["cases"]
    assert found, f"the index lists no cases of topic {topic}"
    return found


def topics() -> set[str]:
    """Every topic that the index lists."""
    return {entry["topic"] for entry in _read("index.json")["files"]}


def _read(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


class Tally:
    """Plays every case of a topic, and reports all that failed, not just the first."""

    def __init__(self, topic: str, mode: str) -> None:
        self.topic, self.mode = topic, mode
        self.ran = 0
        self.skipped: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, case: Case, play: Callable[[Case], None], unplayable: str | None = None) -> None:
        """Plays one case; `unplayable` is why it cannot be played."""
        if unplayable is not None:
            self.skipped[unplayable] += 1
            return
        self.ran += 1
        try:
            play(case)
        except Exception as error:
            why = error if isinstance(error, Differs) else repr(error)
            self.failures.append(f"{case['id']}: {case['description']}\n    {why}")

    def report(self) -> str:
        """The counts in one line; fails where a case failed or was left out."""
        reasons = "; ".join(f"{n} {reason}" for reason, n in self.skipped.most_common())
        line = f"{self.topic} {self.mode}: {self.ran} ran, {self.skipped.total()} skipped"
        line += f" ({reasons})" if reasons else ""
        assert not self.failures, f"{len(self.failures)} failed; {line}\n" + "\n".join(self.failures)
        assert self.ran + self.skipped.total() == len(cases(self.topic)), f"some cases were left out; {line}"
        return line


# --- comparing -------------------------------------------------------------------------------------------------------


UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86_400 * 10**9}


def ns(text: str) -> int:
    """A duration of the vectors in nanoseconds. Read here and not by the engine, which is what is being tested."""
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h|d)", text)
    whole = sum(Fraction(number) * UNITS[unit] for number, unit in parts)
    assert "".join(map("".join, parts)) == text, f"{text!r} is no duration"
    assert whole == int(whole), f"{text!r} is finer than a nanosecond"
    return int(whole)


def check(expect: Any, seen: Any) -> None:
    """What is expected must be there; what is not mentioned is not compared; `null` must be absent. An expected
    duration `x` is text, compared with the nanoseconds in `x_ns`."""
    if not _matches(expect, seen):
        raise Differs(f"expected {json.dumps(expect)}\n    saw      {json.dumps(seen)}")


def built_as_expected(case: Case, build: Callable[[Case], Policy]) -> Policy | None:
    """The policy that a case expects, or nothing where it expects the refusal that came."""
    try:
        built = build(case)
    except ConfigError as error:
        if "error" not in case["expect"]:
            raise
        check(case["expect"]["error"], {"field": error.field, "value": error.value, "allowed": error.allowed})
        return None
    if "valid" not in case["expect"]:
        raise Differs(f"accepted: {built.to_json()}")
    check(case["expect"]["valid"], json.loads(built.to_json()))
    return built


def _matches(expect: Any, seen: Any) -> bool:
    if isinstance(expect, dict):
        return isinstance(seen, dict) and all(_field_matches(seen, name, want) for name, want in expect.items())
    if isinstance(expect, list):
        return (
            isinstance(seen, list)
            and len(seen) == len(expect)
            and all(_matches(*pair) for pair in zip(expect, seen, strict=True))
        )
    # In Python 1 == True, in JSON it is not.
    return isinstance(expect, bool) == isinstance(seen, bool) and bool(expect == seen)


def _field_matches(seen: dict[str, Any], name: str, want: Any) -> bool:
    nanoseconds = seen.get(f"{name}_ns")
    if isinstance(want, str) and isinstance(nanoseconds, int):
        return ns(want) == nanoseconds
    if want is None and nanoseconds is not None:
        return False  # what must be absent must be absent by either name
    return _matches(want, seen.get(name))


def shown(action: Action) -> Any:
    """An action as `expect` has it, durations in nanoseconds."""
    fields = (
        "number",
        "target",
        "timeout_ns",
        "hedge_after_ns",
        "after_ns",
        "reason",
        "disposition",
        "resume_in_ns",
        "discard",
        "resume",
    )
    held = {name: value for name in fields if (value := getattr(action, name)) is not None}
    return {action.kind: held} if held else action.kind


def verb(do: Any) -> tuple[str, Any]:
    """A word, or the key of an object that is one of the things to do."""
    if isinstance(do, str):
        return do, None
    found = [word for word in VERBS if word in do]
    if len(found) != 1:
        raise Differs(f"{do} is not one thing to do")
    return found[0], do[found[0]]


def policy_of(case: Case) -> Policy:
    """The policy of a case: a preset, and what replaces its fields."""
    fields = case.get("policy") or {}
    return Policy.preset(case["preset"]).replace(**fields) if "preset" in case else Policy(**fields)


# --- playing a call's steps ------------------------------------------------------------------------------------------


class Played(Protocol):
    """One call, through the raw machine or through a driver. Each answers what was decided, as `expect` has it."""

    def begin(self, at: int) -> Any: ...
    def outcome(self, at: int, do: dict[str, Any]) -> Any: ...
    def cancel(self, at: int) -> Any: ...
    def first_item(self, at: int, attempt: int | None) -> Any: ...
    def hedge(self, at: int) -> Any: ...
    def snapshot(self, at: int, wall: int) -> str: ...
    def records(self) -> list[dict[str, Any]]: ...


class Hands(VirtualClock):
    """A clock whose hands the case moves."""

    def __init__(self) -> None:
        super().__init__(start=0)

    def set(self, at: int, wall: int | None = None) -> None:
        self._now = at
        if wall is not None:
            self._wall = wall - at // 1_000_000


@contextmanager
def hands(clock: VirtualClock) -> Iterator[None]:
    """The clock is in force while this is open."""
    before = _clock.install(clock)
    try:
        yield
    finally:
        _clock.install(before)


class World:
    """What a case plays in: a call, the calls that were named, and the guards and the run they share."""

    def __init__(self, case: Case, clock: Hands, fresh: Callable[[World, Policy, int, dict[str, Any]], Played]) -> None:
        self.case, self.clock, self._fresh = case, clock, fresh
        self.policy, self.seed = policy_of(case), int(case["seed"])
        self.guards = Guards() if case.get("guards") else None
        self.run = Run(**case["run"]) if "run" in case else None
        self._name = ""
        self._parked: dict[str, Played] = {}
        self._kept = ""
        self.call = fresh(self, self.policy, self.seed, case.get("options", {}))

    def play(self) -> None:
        for i, step in enumerate(self.case["steps"]):
            at = ns(step["at"])
            self.clock.set(at)
            try:
                seen = self._act(at, step["do"])
                if "expect" in step:
                    check(step["expect"], seen)
            except Exception as error:
                why = error if isinstance(error, Differs) else repr(error)
                raise Differs(f"step {i} at {step['at']}, {json.dumps(step['do'])}: {why}") from error

    def _act(self, at: int, do: Any) -> Any:
        word, body = verb(do)
        match word:
            case "begin":
                return self.call.begin(at)
            case "success" | "failure" | "evidence":
                return self.call.outcome(at, do)
            case "cancel":
                return self.call.cancel(at)
            case "first_item":
                return self.call.first_item(at, body and body["attempt"])
            case "hedge":
                return self.call.hedge(at)
            case "receipts":
                return [record for record in self.call.records() if "record" not in record]
            case "ended":
                return next((r for r in self.call.records() if r.get("record") == "call_ended"), None)
            case "call":
                return self._switch(body)
            case "snapshot":
                self._kept = self.call.snapshot(at, body["wall"])
            case "restore":
                return self._restore(at, body)
            case "report":
                assert self.guards is not None
                self.guards.report(**body)
            case "run_cancel":
                assert self.run is not None
                self.run.cancel(body)
            case _:
                raise Differs(f"no such thing to do: {word}")
        return None

    def _switch(self, to: str | dict[str, Any]) -> None:
        if isinstance(to, str):
            name, call = to, self._parked.pop(to)
        else:
            own = "policy" in to or "preset" in to
            policy, seed = policy_of(to) if own else self.policy, int(to.get("seed", self.seed))
            name, call = to.get("name", ""), self._fresh(self, policy, seed, to.get("options", {}))
        self._parked[self._name] = self.call
        self._name, self.call = name, call

    def _restore(self, at: int, body: dict[str, Any]) -> Any:
        how = {"count_suspended": body.get("count_suspended", True), "repairs": body.get("repairs", ())}
        call, action = Call.restore(self._kept, at, body["wall"], guards=self.guards, run=self.run, **how)
        self.call = Raw(call)
        return shown(action)


class Raw:
    """A call through the raw machine."""

    def __init__(self, call: Call) -> None:
        self._call = call

    @classmethod
    def fresh(cls, world: World, policy: Policy, seed: int, ids: dict[str, Any]) -> Raw:
        repairs, ids = ids.get("repairs", ()), {name: text for name, text in ids.items() if name != "repairs"}
        ids = {"trace_id": "", **ids}
        return cls(Call(policy, seed, ids=ids, guards=world.guards, run=world.run, repairs=repairs))

    def begin(self, at: int) -> Any:
        return self._told(lambda: self._call.begin(at))

    def outcome(self, at: int, do: dict[str, Any]) -> Any:
        number = do.get("attempt", self._call._native.attempts)
        outcome = {name: value for name, value in do.items() if name != "attempt"}
        if "success" in outcome:
            # What a success brings with it stands inside it in the vectors, beside it on the wire.
            outcome = {**outcome, **outcome["success"], "success": {}}
        return self._told(lambda: self._call.on_outcome(at, number, outcome))

    def cancel(self, at: int) -> Any:
        return self._told(lambda: self._call.cancel(at))

    def first_item(self, at: int, attempt: int | None) -> Any:
        return shown(self._call.first_item(at, attempt))

    def hedge(self, at: int) -> Any:
        return shown(self._call.hedge(at))

    def snapshot(self, at: int, wall: int) -> str:
        return self._call.snapshot(at, wall)

    def records(self) -> list[dict[str, Any]]:
        return self._call.records

    def _told(self, ask: Callable[[], Action]) -> Any:
        try:
            return shown(ask())
        except MisuseError:
            return {"error": "misuse"}
