"""Calls through the drivers, with a clock whose hands the case moves and waits that are recorded.

Each call runs on a thread of its own, and stops wherever it hands control to the script: inside its function, and
inside a wait. So the steps of a case are played in their order, also where several calls are under way, and only one
thread ever runs. What a driver was told is compared in nanoseconds, as the machine said it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from driving import Mode
from scripted import Scripted, classify, raised_for, retry_if, value_of
from vectors import Differs, Hands, World, shown, verb

import reprieve
from reprieve import Bound, Failure, Policy, Result, _errors
from reprieve._session import Session

#: Longer than any step takes: then the driver hangs.
PATIENCE = 120.0
#: More than a driver is ever told between two stops: then it spins.
SPINS = 50


class Closed(BaseException):
    """The case is over: whoever still waits for it leaves."""


class Clock(Hands):
    """Hands that the case moves; a wait goes on when the case says so."""

    def __init__(self) -> None:
        super().__init__()
        self.lane: Lane | None = None

    def sleep(self, seconds: float) -> None:
        assert self.lane is not None
        self.lane.slept(seconds)


class Lane:
    """One call through a driver. The script is one side, the driver's thread the other; one of them runs."""

    def __init__(self, world: World, policy: Policy, seed: int, ids: dict[str, Any], mode: Mode) -> None:
        self._clock = cast("Clock", world.clock)
        self._mode = mode
        words = {verb(step["do"])[0] for step in world.case["steps"]}
        beside = {name for step in world.case["steps"] if isinstance(step["do"], dict) for name in step["do"]}
        #: Somebody asks for the records, which a plain `call` writes for nobody.
        self.recorded = bool(words & {"receipts", "ended"})
        #: A handle is what cancels a coroutine at once, and what takes snapshots.
        self.by_handle = "snapshot" in words or ("cancel" in words and mode.coroutine)
        self._event = threading.Event()
        functions: dict[str, Any] = {
            "classify": classify if "failure" in words else None,
            "retry_if": retry_if if "retry_if" in beside else None,
            "backoff": self._backoff if "backoff" in beside else None,
            "cancel": self._event if "cancel" in words else None,
        }
        ids, client = dict(ids), ids.get("client")
        repairs, _ = ids.pop("repairs", ()), ids.pop("client", None)
        functions["repair"] = dict.fromkeys(repairs, self._repair) or None
        bound = policy.bind(seed=seed, guards=world.guards, run=world.run, **functions, **ids)
        self._bound = Bound(policy, replace(bound._options, client=client))
        self.repaired: list[str] = []
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._go, self._back, self._started = (threading.Semaphore(0) for _ in range(3))
        self._handle: reprieve.Handle[Any] | None = None
        self._session: Session | None = None
        self._told: deque[tuple[int, Any]] = deque()
        self._where = "before"
        self._do: dict[str, Any] = {}
        self._attempts = 0
        self._error: Scripted | None = None
        self._fault: Exception | None = None
        self._crash: BaseException | None = None
        self._wait: int | None = None
        self._end: Result[Any] | Exception | str | None = None
        self._within = False
        self._closing = False

    # --- the script's side ---

    def begin(self, at: int) -> Any:
        if not self._told:  # after a wait of zero a driver has gone on by itself
            self._run()
        return self._next(at)

    def outcome(self, at: int, do: dict[str, Any]) -> Any:
        self._must_be("attempt")
        self._do = do
        self._run()
        return self._next(at)

    def cancel(self, at: int) -> Any:
        if self._handle is not None:
            self._handle.cancel()
        else:
            self._event.set()
        if self._where != "attempt":
            self._run()
            return self._next(at)
        if self._session is None or self._session.call.state != "in_flight":
            raise Differs("nothing is in flight")
        return "pending"

    def first_item(self, at: int, attempt: int | None) -> Any:
        raise AssertionError("a plain call has no items")

    def hedge(self, at: int) -> Any:
        raise AssertionError("one thread cannot run attempts beside each other")

    def snapshot(self, at: int, wall: int) -> str:
        assert self._handle is not None
        self._clock.set(at, wall)
        return self._handle.snapshot()

    def records(self) -> list[dict[str, Any]]:
        assert self._session is not None
        trace = self._session.trace()
        if isinstance(self._end, Result):
            trace = self._end.trace
        elif isinstance(self._end, Exception):
            attached = reprieve.trace_of(self._end)
            assert attached is not None
            trace = attached
        return trace.receipts + ([trace.ended] if trace.ended else [])

    def close(self) -> None:
        """Lets a driver that is still under way leave."""
        self._closing = True
        if self._where in ("attempt", "wait"):
            self._go.release()
            self._thread.join(PATIENCE)

    def _run(self) -> None:
        """Lets the driver go on to where it stops next."""
        self._clock.lane = self
        if self._where == "over":
            raise Differs("the driver is over")
        if self._where == "before":
            self._thread.start()
        else:
            self._go.release()
        if not self._back.acquire(timeout=PATIENCE):
            raise Differs("the driver hangs")
        if self._fault is not None:
            raise self._fault
        if self._crash is not None:
            raise Differs(f"the driver raised {self._crash!r}") from self._crash

    def _next(self, at: int) -> Any:
        """The next thing that the driver was told; it must have been told at this moment."""
        if not self._told:
            raise Differs(f"the driver was told nothing; it is in: {self._where}")
        moment, action = self._told.popleft()
        if moment != at:
            raise Differs(f"the driver was told {shown(action)} at {moment} ns")
        if not self._told:
            self._check_where(action)
        return shown(action)

    def _check_where(self, action: Any) -> None:
        """The driver does what it was told."""
        if action.kind == "attempt":
            self._must_be("attempt")
        elif action.kind == "retry":
            self._must_be("wait")
            if self._wait != action.after_ns:
                raise Differs(f"told to sleep {action.after_ns} ns, the driver sleeps {self._wait} ns")
        else:
            self._must_be("over")
            self._check_end(action)

    def _must_be(self, where: str) -> None:
        if self._where != where:
            raise Differs(f"the driver is in: {self._where}, not in: {where}")

    def _check_end(self, action: Any) -> None:
        """What the caller gets is what the machine decided."""
        end = self._end
        if action.kind == "done":
            if (end.value if isinstance(end, Result) else end) != value_of(self._do):
                raise Differs(f"the value is lost: {end}")
            return
        error = end.error if isinstance(end, Result) else end
        cancelled = action.reason == "cancelled" and self._session is not None and self._session.cancelled()
        own = None if cancelled else self._error
        kind = _errors.BY_REASON.get(action.reason)
        if not (error is own if own is not None else kind is not None and type(error) is kind):
            raise Differs(f"stopped for {action.reason}, the call raises {error!r}")
        if isinstance(end, Result):
            seen = (end.ok, end.stop_reason, end.disposition, _ns(end.resume_in), end.attempts)
            told = (False, action.reason, action.disposition, action.resume_in_ns, self._attempts)
            if seen != told:
                raise Differs(f"told {told}, the result says {seen}")

    # --- the driver's side ---

    def told(self, session: Session, action: Any) -> None:
        """A session is told an action; that of a call that the function makes is another one's."""
        if not self._within:
            self._session = session
            self._told.append((self._clock.now(), action))
        if len(self._told) > SPINS:
            raise Closed("the driver spins")

    def begun(self, action: Any) -> int:
        """A driver begins an attempt by itself; at this moment."""
        self._told.append((self._clock.now(), action))
        return self._clock.now()

    def slept(self, seconds: float) -> None:
        if seconds > 0:
            self._wait = _ns(seconds)
            self._pause("wait")

    def function(self) -> Any:
        self._attempted()
        if self._fails_within():
            with self._another():
                Policy.preset("single").call(self._raise)
        return self._outcome()

    async def coroutine(self) -> Any:
        self._attempted()
        if self._do.get("failure", {}).get("kind") == "cancelled" and self._session and self._session.cancelled():
            await self._mode.forever()
        if self._fails_within():
            with self._another():
                await Policy.preset("single").call(self._raise_async)
        return self._outcome()

    def _repair(self, request: dict[str, Any], failure: Failure) -> None:
        self.repaired.append(failure.kind)

    def _attempted(self) -> None:
        self._attempts += 1
        try:
            self._look()
        except Exception as fault:  # raised on the script's side
            self._fault = fault
        self._pause("attempt")

    def _look(self) -> None:
        """The function sees the attempt that the machine started."""
        attempt, action = reprieve.current_attempt(), self._told[-1][1]
        if self._mode.late and self._attempts == 1:
            return
        seen = attempt and (attempt.number, attempt.target, _ns(attempt.timeout), attempt.ends_by - attempt.began)
        told = (action.number, action.target, action.timeout_ns, action.timeout_ns)
        if seen != told:
            raise Differs(f"told {told}, current_attempt() says {seen}")

    def _fails_within(self) -> bool:
        """The failure is that of another call, which the function makes."""
        return "inner_trace" in self._do.get("failure", {})

    @contextmanager
    def _another(self) -> Iterator[None]:
        self._within = True
        try:
            yield
        finally:
            self._within = False

    def _outcome(self) -> Any:
        if "success" in self._do:
            return value_of(self._do)
        return self._raise()

    def _raise(self) -> Any:
        self._error = raised_for(self._do)
        raise self._error

    async def _raise_async(self) -> Any:
        self._raise()

    def _backoff(self, failure: Failure, n: int) -> Any:
        return self._do.get("backoff")

    def _pause(self, where: str) -> None:
        """Hands control to the script, until that hands it back."""
        if self.by_handle:
            self._started.acquire()  # the script may ask for the handle
            self._started.release()
        self._where = where
        self._back.release()
        self._go.acquire()
        if self._closing:
            raise Closed

    def _main(self) -> None:
        try:
            self._end = self._mode.drive(self, self._bound)
        except Exception as error:
            self._end = error
        except BaseException as crash:
            self._crash = crash
        self._where = "over"
        self._back.release()

    def handled(self, handle: reprieve.Handle[Any]) -> reprieve.Handle[Any]:
        self._handle = handle
        self._started.release()
        return handle


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e9)
