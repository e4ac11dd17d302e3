"""Plays a scenario with a client, and writes down what was seen."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from clients import Call, Client, End, Question
from places import FullBacklog, Gateway

from reprieve import Bound, Policy, Run, trace_of

#: No call of the drill takes so long, in seconds. What a call must not wait for takes longer than this.
PATIENCE = 120.0

Json = dict[str, Any]


@dataclass(frozen=True)
class SeenCall:
    """One call, as its caller, its records and its timeline tell it."""

    elapsed_ms: float
    answer: str | None
    error: BaseException | None
    lines: list[str]
    timeline: str | None

    @cached_property
    def records(self) -> list[Json]:
        return [json.loads(line) for line in self.lines]

    @property
    def receipts(self) -> list[Json]:
        return [record for record in self.records if "record" not in record]

    @property
    def ended(self) -> Json:
        return next((record for record in self.records if record.get("record") == "call_ended"), {})

    @property
    def failure(self) -> Json:
        """The last receipt of an attempt, if that failed."""
        last = next((receipt for receipt in reversed(self.receipts) if receipt["attempt"] is not None), {})
        return last if last.get("kind") else {}


@dataclass(frozen=True)
class SeenStep:
    """A step: its calls, and what the gateway and the guards say after it."""

    client: str
    calls: list[SeenCall]
    #: What reached the gateway meanwhile, by target.
    requests: dict[str, list[Json]]
    breaker: str | None


def drill_id(scenario: Json, client: str) -> str:
    """What the gateway knows the requests of a play by."""
    return f"{scenario['id']}/{client}".replace(" ", "-")


def steps_of(scenario: Json) -> list[Json]:
    """The steps of a scenario; without any, it is one itself."""
    steps: list[Json] = scenario.get("steps") or [scenario]
    return steps


@dataclass(frozen=True)
class Player:
    """Plays one scenario with one client."""

    gateway: Gateway
    backlog: FullBacklog
    client: Client
    scenario: Json
    prompt_version: str

    def play(self) -> list[SeenStep]:
        """All steps, one after another, with the same guards."""
        fields = self.scenario.get("policy", {})
        preset = self.scenario.get("preset")
        policy = self._preset(preset, fields) if preset else Policy.from_json(json.dumps(fields))
        guards = policy.guards
        seen: list[SeenStep] = []
        for step in steps_of(self.scenario):
            time.sleep(step.get("after_ms", 0) / 1000)
            before = self._requests()
            bound = policy.replace(**step.get("replace", {})).bind(guards=guards)
            calls = self._calls(bound, step)
            requests = {target: new[len(before[target]) :] for target, new in self._requests().items()}
            seen.append(SeenStep(self.client.name, calls, requests, guards.breaker_state(policy)))
        return seen

    @staticmethod
    def _preset(name: str, fields: Json) -> Policy:
        return Policy.preset(name).replace(**fields)

    def _calls(self, bound: Bound, step: Json) -> list[SeenCall]:
        count = step.get("calls", 1)
        if not step.get("together"):
            return [self._call(bound) for _ in range(count)]
        started = [self._start(bound) for _ in range(count)]
        return [self._seen(call.end.result(PATIENCE), lines) for call, lines in started]

    def _call(self, bound: Bound) -> SeenCall:
        cancel = self.scenario.get("cancel")
        if cancel is None:
            call, lines = self._start(bound)
            return self._seen(call.end.result(PATIENCE), lines)
        run, once, heard = Run(), cancel["once"], threading.Event()
        if cancel["what"] == "run":
            bound = bound.bind(run=run)
        call, lines = self._start(bound.bind(on_event=lambda e: heard.set() if e["event"] == once else None))
        if once == "request":
            self._await_request()
        else:
            heard.wait(PATIENCE)
        time.sleep(cancel["after_ms"] / 1000)
        if cancel["what"] == "run":
            run.cancel("the drill cancels it")
        else:
            call.cancel()
        return self._seen(call.end.result(PATIENCE), lines)

    def _await_request(self) -> None:
        """Until the gateway has one."""
        give_up = time.monotonic() + PATIENCE
        while not any(self._requests().values()) and time.monotonic() < give_up:
            time.sleep(0.02)

    def _start(self, bound: Bound) -> tuple[Call, list[str]]:
        lines: list[str] = []
        asks = {target: partial(self.client.ask, self._question(target)) for target in self.scenario["prompts"]}
        known = {target: ask for target, ask in asks.items() if target in bound.policy.targets}
        bound = bound.bind(
            scene=f"drill/{self.scenario['id']}", prompt_version=self.prompt_version, sink=lines.append, targets=known
        )
        return self.client.start(bound, asks["primary"]), lines

    def _seen(self, end: End, lines: list[str]) -> SeenCall:
        trace = end.result.trace if end.result else trace_of(end.error) if end.error else None
        return SeenCall(
            elapsed_ms=(end.ended - end.began) * 1000,
            answer=None if end.value is None else self.client.text(end.value),
            error=end.error,
            lines=lines,
            timeline=None if trace is None else str(trace),
        )

    def _question(self, target: str) -> Question:
        url = self.backlog.url if self.scenario.get("to") == "full backlog" else self.gateway.url
        return Question(url, self._drill, f"{target}-model", self.scenario["prompts"][target])

    @property
    def _drill(self) -> str:
        return drill_id(self.scenario, self.client.name)

    def _requests(self) -> dict[str, list[Json]]:
        """Every request so far by target; under `other`, what no target has asked for."""
        prompts = {prompt: target for target, prompt in self.scenario["prompts"].items()}
        found: dict[str, list[Json]] = {target: [] for target in (*prompts.values(), "other")}
        for prompt, requests in self.gateway.requests(self._drill).items():
            found[prompts.get(prompt, "other")].extend(requests)
        return found
