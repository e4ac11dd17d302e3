"""The raw machine, for drivers of one's own: outcomes and time in, actions out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _native
from ._evidence import evidence_of
from ._json import as_json
from ._reading import headers, safely, well_formed

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._guards import Guards, Run
    from ._native import Action, Failure
    from ._policy import Policy
    from .types import EvidenceFields


class Call:
    """One call as a state machine. Reads no clock: every method takes `now`, in nanoseconds since any one moment.

    `on_outcome` takes what an attempt came to: a dict with one of `success`, `failure` (at least its `kind`) and
    `evidence`, and as needed `delivered`, `retry_if`, `backoff`, `usage`. `repairs` are the kinds of failure after
    which you can change the request: the first one of each is answered with a retry at once, whose reason is `repair`.

    >>> from reprieve import Call, Policy
    >>> call = Call(Policy(jitter={"kind": "none"}), seed=7)
    >>> call.begin(0).kind
    'attempt'
    >>> call.on_outcome(1_000_000, 1, {"failure": {"kind": "timeout"}}).after
    0.5
    """

    def __init__(
        self,
        policy: Policy,
        seed: int,
        *,
        ids: dict[str, str] | None = None,
        guards: Guards | None = None,
        run: Run | None = None,
        ends_by: int | None = None,
        repairs: Iterable[str] = (),
    ) -> None:
        self._native: _native.Call = _native.Call(
            policy._native,
            seed,
            ids=as_json(ids) if ids else None,
            guards=guards._native if guards else None,
            run=run._native if run else None,
            ends_by=ends_by,
            repairs=list(repairs),
        )

    def begin(self, now: int) -> Action:
        """Begins an attempt: the first, or the one after a wait or fallback."""
        return self._native.begin(now)

    def on_outcome(self, now: int, number: int, outcome: Mapping[str, Any]) -> Action:
        """Takes the outcome of attempt `number`."""
        return self._native.on_outcome(now, number, as_json(outcome))

    def cancel(self, now: int) -> Action:
        """Cancels the call, in any state."""
        return self._native.cancel(now)

    def first_item(self, now: int, number: int | None = None) -> Action:
        """An attempt (the latest unless said) has its first item. `pending`: it goes on, alone from now on. `ignored`:
        it is not in flight, because another one was first; drop it."""
        return self._native.first_item(now, number)

    def hedge(self, now: int) -> Action:
        """The latest attempt's `hedge_after` has passed: an `attempt` that joins it, or `pending` where none may. The
        rest are yours to cancel once one has won; their outcomes are `ignored`.

        >>> from reprieve import Call, Policy
        >>> call = Call(Policy(hedge={"after": 0.3}), seed=7)
        >>> call.begin(0).hedge_after
        0.3
        >>> call.hedge(300_000_000).number
        2
        >>> call.on_outcome(350_000_000, 2, {"success": {}}).kind, call.on_outcome(360_000_000, 1, {"success": {}}).kind
        ('done', 'ignored')
        """
        return self._native.hedge(now)

    def snapshot(self, now: int, wall_now_ms: int) -> str:
        """The call as JSON."""
        return self._native.snapshot(now, wall_now_ms)

    @classmethod
    def restore(
        cls,
        snapshot: str,
        now: int,
        wall_now_ms: int,
        *,
        count_suspended: bool = True,
        guards: Guards | None = None,
        run: Run | None = None,
        repairs: Iterable[str] = (),
    ) -> tuple[Call, Action]:
        """The call of a snapshot, and its next action. Raises `SnapshotError`."""
        native, action = _native.Call.restore(
            well_formed(snapshot),
            now,
            wall_now_ms,
            count_suspended=count_suspended,
            guards=guards._native if guards else None,
            run=run._native if run else None,
            repairs=list(repairs),
        )
        call = cls.__new__(cls)
        call._native = native
        return call, action

    @property
    def state(self) -> str:
        """`ready`, `in_flight`, `waiting` or `ended`."""
        return self._native.state

    @property
    def records(self) -> list[dict[str, Any]]:
        """The receipts so far, and the `call_ended` record once it has ended."""
        return [json.loads(line) for line in self._native.lines()]


def classify(
    error: BaseException | None = None, /, *, policy: Policy | None = None, **evidence: Unpack[EvidenceFields]
) -> Failure:
    """What a failure is: of an exception, or of raw evidence (`status=`, `headers=`, `body=`, `message=`,
    `error_types=`, `os_code=`, `provider_code=`, `provider_type=`, `in_stream=`, `wall_now_ms=`).

    >>> classify(status=429, headers={"retry-after": "20"}).retry_after
    20.0
    >>> classify(ConnectionRefusedError()).kind
    'transport'
    """
    facts: dict[str, Any] = {**(evidence_of(error) if error is not None else {}), **evidence}
    if "headers" in facts:
        facts["headers"] = safely(headers, facts["headers"]) or []
    return _native.classify(as_json(facts), policy._native if policy else None)
