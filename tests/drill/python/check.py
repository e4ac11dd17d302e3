"""Holds what was seen to what is expected. Every difference is a sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from play import Json, SeenCall, SeenStep


def differences(expect: Json, seen: SeenStep) -> list[str]:
    """What differs in a step; nothing if all is as expected."""
    found = [*_of_step(expect, seen), *_of_gateway(expect, seen)]
    for number, call in enumerate(seen.calls, 1):
        which = f"call {number}: " if len(seen.calls) > 1 else ""
        found += [which + difference for difference in (*_of_call(expect, call), *_of_records(call, seen.client))]
    return found


def hidden(attempts: Json, counts: Json) -> list[str]:
    """Requests that no attempt explains, however late they came: both count by drill."""
    return [
        f"{drill}: {attempts.get(drill, 0)} attempts, and the gateway has seen {count} requests"
        for drill, count in counts.items()
        if count > attempts.get(drill, 0)
    ]


def fits(expected: Any, value: Any) -> bool:
    """Equal, within `[lowest, highest]` (`None` is no limit), or like `"~a regular expression"`."""
    if isinstance(expected, list):
        low, high = expected
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and low <= value and (high is None or value <= high)
    if isinstance(expected, str) and expected.startswith("~"):
        return isinstance(value, str) and re.search(expected[1:], value) is not None
    return type(expected) is type(value) and bool(expected == value)


def words(expected: Any) -> str:
    """An expected value, for people."""
    if isinstance(expected, list):
        low, high = expected
        if high is None:
            return f"at least {low}"
        return f"{low} or {high}" if high == low + 1 else f"{low} to {high}"
    return str(expected)


def _differs(what: str, expected: Any, value: Any) -> Iterator[str]:
    if not fits(expected, value):
        shown = f"{value:.0f}" if isinstance(value, float) else value
        yield f"{what}: expected {words(expected)}, seen {shown}"


def _of_step(expect: Json, seen: SeenStep) -> Iterator[str]:
    if "breaker" in expect:
        yield from _differs("breaker", expect["breaker"], seen.breaker)
    if isinstance(expect.get("target"), dict):
        yield from _differs("target", expect["target"], dict(Counter(call.ended.get("target") for call in seen.calls)))
    breakers = [record for call in seen.calls for record in call.records if record.get("record") == "breaker"]
    moves = [f"{r['from']} > {r['to']}" for r in sorted(breakers, key=lambda r: r["at_ms"])]
    if moves != expect.get("transitions", []):
        yield f"transitions: expected {expect.get('transitions', [])}, seen {moves}"


def _of_call(expect: Json, call: SeenCall) -> Iterator[str]:
    """What a scenario says of each of its calls."""
    for name in ("outcome", "reason", "attempts", "target"):
        if name in expect and not isinstance(expect[name], dict):
            yield from _differs(name, expect[name], call.ended.get(name))
    for name in ("category", "kind"):
        if name in expect:
            yield from _differs(name, expect[name], call.failure.get(name))
    if "elapsed_ms" in expect:
        yield from _differs("elapsed_ms", expect["elapsed_ms"], call.elapsed_ms)
    for name, value in expect.get("ended", {}).items():
        yield from _differs(f"ended.{name}", value, call.ended.get(name))
    if "receipts" in expect:
        yield from _differs("receipts", len(expect["receipts"]), len(call.receipts))
    for number, (fields, receipt) in enumerate(zip(expect.get("receipts", []), call.receipts, strict=False), 1):
        for name, value in fields.items():
            yield from _differs(f"receipt {number}, {name}", value, receipt.get(name))


def _of_records(call: SeenCall, client: str) -> Iterator[str]:
    """What holds for every call."""
    yield from _differs("trace ids", 1, len({record["trace_id"] for record in call.records if "trace_id" in record}))
    numbers = [receipt["attempt"] for receipt in call.receipts if receipt["attempt"] is not None]
    if numbers != list(range(1, call.ended.get("attempts", 0) + 1)):
        yield f"attempts are numbered {numbers}, and the call counts {call.ended.get('attempts')}"
    outcome = call.ended.get("outcome")
    if (outcome == "success") != bool(call.answer):
        yield f"the outcome is {outcome}, and the answer {call.answer!r}"
    error = type(call.error)
    allowed = [client.split()[0]] if outcome == "failure" else []
    if outcome == "cancelled" or call.failure.get("kind") == "timeout":
        allowed += ["reprieve", "asyncio"]
    if call.error is not None and error.__module__.split(".")[0] not in allowed:
        yield f"the call raised {error.__module__}.{error.__qualname__}"


def _of_gateway(expect: Json, seen: SeenStep) -> Iterator[str]:
    """No request is missing, none is hidden, and each belongs to its call."""
    for target, requests in seen.requests.items():
        yield from _differs(f"requests to {target}", expect["requests"].get(target, 0), len(requests))
    every = sorted((request for found in seen.requests.values() for request in found), key=lambda r: r["at_ms"])
    made = {call.ended.get("idempotency_key"): call.ended.get("attempts", 0) for call in seen.calls}
    for key, count in Counter(request["idempotency-key"] for request in every).items():
        if count > made.get(key, 0):
            yield f"{count} requests with idempotency key {key}, whose call made {made.get(key, 0)} attempts"
    for retried in sorted({str(request["x-stainless-retry-count"]) for request in every} - {"0"}):
        yield f"x-stainless-retry-count: expected 0, seen {retried}"
    if "gap_ms" in expect:
        gap = every[1]["at_ms"] - every[0]["at_ms"] if len(every) > 1 else None
        yield from _differs("gap_ms", expect["gap_ms"], gap)
