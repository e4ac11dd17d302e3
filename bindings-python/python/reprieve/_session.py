"""One call, as the drivers of plain functions and of coroutines share it: the machine, the records, the ends.

Nothing here decides: outcomes go into the machine, and what it answers goes back to the driver.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from . import _native
from ._clock import clock
from ._current import CURRENT, NO_ANSWER, Attempt, Facts, current_attempt
from ._errors import AttemptTimeout, BadOutput
from ._evidence import evidence_of
from ._giving_up import exception_of
from ._hooks import asked, reclassified, truth_of, wait_of, writer_of
from ._json import as_json
from ._request import Broken, Request, checked, checked_async
from ._result import Result
from ._starting import Around, Started, call_of, ids_of
from ._trace import Trace, attach, attached
from ._usage import usage_of

if TYPE_CHECKING:
    from ._native import Action, Failure
    from ._options import Caller


class Session:
    """One call. A driver asks it what to do, does it, and tells it how that went."""

    #: Its attempts can run beside each other.
    hedges = True

    def __init__(
        self,
        owner: Caller,
        kwargs: dict[str, Any] | None = None,
        *,
        recorded: bool = False,
        started: Started | None = None,
    ) -> None:
        self.options = owner._options
        self.request = Request(owner._options, kwargs or {})
        #: What the latest attempt has answered and `check` has looked at.
        self._answer: Any = NO_ANSWER
        #: The function of the user's that ended the call by raising: `prepare` and the like.
        self.broken_by: str | None = None
        self.policy = owner._native
        self.value: Any = None
        self.error: Exception | None = None
        self.cancel_reason: str | None = None
        #: What wakes the driver's wait, and cancels attempts that are coroutines. The driver's, while it can be woken.
        self.wakers: set[Callable[[], None]] = set()
        #: A handle may wake or cancel it.
        self.handled = False
        self._attempt: Attempt | None = None
        #: The attempts in flight, by their numbers: several where one has joined another.
        self._in_flight: dict[int, Attempt] = {}
        #: Of several: the number of the one that is spoken of.
        self._number: int | None = None
        #: What the latest attempt has shown.
        self._shown = 0
        #: When the latest attempt began, in real time: an inner call's trace is made after that.
        self._since = started.began if started else 0
        self._reset_to: Any = None
        #: Records of retries that a wrapped client made by itself.
        self._hidden: list[str] = []
        self._outer = current_attempt()
        self.run = self.options.run or (self._outer.run if self._outer else None)
        self._guards = owner.guards if self.options.guards or self.policy.guarded else None
        self._recorded = recorded or any(told is not None for told in (self.options.sink, self.options.meter, self.run))
        self._ids = ids_of(self.options, started.ids if started else None)
        around = Around(self._outer, self._guards, self.run, self._recorded)
        self.call = call_of(self.policy, self.options, self._ids, around, started)
        if self.run is not None:
            self.run._join(self.wake)

    # --- what a driver asks ---

    def begin(self) -> Action:
        """Begins the next attempt, or ends a call that was cancelled meanwhile."""
        if self.cancelled():
            return self._told(self.call.cancel(clock().now()))
        return self._told(self.call.begin(clock().now()))

    def hedge(self) -> Action:
        """The latest attempt is slow: whether another joins it."""
        if self.cancelled():
            return self._told(self.call.cancel(clock().now()))
        return self._told(self.call.hedge(clock().now()))

    def attempt(self, action: Action) -> Attempt:
        """Makes the attempt visible to the function. Undone by its outcome."""
        made = self.beside(action)
        self._reset_to = CURRENT.set(made)
        return made

    def beside(self, action: Action) -> Attempt:
        """Makes an attempt whose task sees to it that it is visible."""
        assert action.number is not None
        assert action.target is not None
        assert action.timeout_ns is not None
        connect_timeout, run = self.policy.connect_timeout, self.run
        facts = Facts(action.number, action.target, action.timeout_ns, self.call.is_last, connect_timeout, run)
        self._attempt = self._made(facts).named(self._ids)
        if not self._in_flight:
            self._since = _native.now()
        self._in_flight[action.number] = self._attempt
        self._number = None
        return self._attempt

    def turn_to(self, attempt: Attempt) -> None:
        """Of several attempts in flight, what is told next is about this one."""
        self._attempt, self._number = attempt, attempt.number

    def hide(self) -> None:
        """The attempt is over, and no longer visible to what runs here."""
        attempt, self._attempt = self._attempt, None
        if attempt is None:
            return
        attempt.ended = True
        self._in_flight.pop(attempt.number, None)
        self._shown, self._answer = attempt.shown, attempt.answer
        if self._reset_to is not None:
            with contextlib.suppress(ValueError):  # the driver goes on in another context: nothing is visible there
                CURRENT.reset(self._reset_to)
            self._reset_to = None

    def function(self, function: Callable[..., Any], target: str) -> Callable[..., Any]:
        """The function of a target: its own, or this one."""
        targets = self.options.targets
        return targets.get(target, function) if targets else function

    def check(self, value: Any) -> None:
        """Raises where `check` refuses the answer of a plain function."""
        if self.options.check is not None and self._attempt is not None:
            self._attempt.answer = value
            checked(self.options.check, value)

    def asked(self, function: Callable[..., Awaitable[Any]], *, prepared: bool) -> Callable[..., Awaitable[Any]]:
        """The coroutine function of an attempt, whose arguments are prepared and whose answer is checked inside of it:
        that takes of its time, and ends when it is cut."""
        prepares, check = self.options.prepare is not None and not prepared, self.options.check
        if not prepares and check is None:
            return function
        assert self._attempt is not None
        attempt = self._attempt

        async def whole(*args: Any, **kwargs: Any) -> Any:
            value = await function(*args, **(await self.request.prepared_async(attempt.target) if prepares else kwargs))
            if check is not None:
                attempt.answer = value
                await checked_async(check, value)
            return value

        return whole

    def between(self) -> Attempt:
        """What bounds what is done between two attempts: the time that is left."""
        call = self.call
        return Attempt(Facts(call.attempts, "", call.time_left_ns, False, None, self.run), clock().now())

    def repaired(self) -> Failure:
        """The failure that the request is to be repaired after, with what it came from."""
        assert self.call.failure is not None
        return self.call.failure.of(self.error, self.value)

    def broken(self, broken: Broken) -> Action:
        """A function of the user's own has raised that the call cannot go on without: the call ends with that."""
        before, self.error, self.broken_by = self.error, broken.error, broken.role
        self.hide()
        if broken.error.__context__ is None and before is not broken.error:
            broken.error.__context__ = before
        if self.call.state != "in_flight":
            return self._told(self.call.cancel(clock().now()))
        self.call.cancel(clock().now())
        return self._outcome({"failure": {"kind": "cancelled", "message": f"{broken.role} raised"}})

    def succeeded(self, value: Any) -> Action:
        """The attempt under way has a value."""
        self.hide()
        self.value, self.error, self._answer = value, None, NO_ANSWER
        meter = self.options.meter
        usage = (usage_of(value) if meter is None else meter.usage(value)) if self._recorded else None
        return self._outcome({"success": {}, "usage": usage} if usage else _SUCCESS)

    def failed(self, error: Exception) -> Action:
        """The attempt under way raised, or the `check` of its answer did."""
        self.hide()
        self.error = error
        if self.cancelled():
            self.call.cancel(clock().now())
        return self._outcome(self._outcome_of(error) | self._refused())

    def timed_out(self) -> Action:
        """The attempt under way was cancelled at its timeout, and has unwound."""
        seconds = self._attempt.timeout if self._attempt else self.policy.first_timeout_ns / 1e9
        self.hide()
        message = f"attempt {self.number} took longer than {seconds:.3g} s"
        own = self.options.meter.timed_out() if self.options.meter else None
        self.error = own or AttemptTimeout(message, attempts=self.number)
        return self._outcome({"failure": {"kind": "timeout", "message": message}} | self._refused())

    def abandoned(self) -> Action:
        """The attempt under way was cancelled: by the run, the event or the handle, or from outside."""
        self.hide()
        self.call.cancel(clock().now())
        return self._outcome({"failure": {"kind": "cancelled"}})

    def stopped_outside(self) -> None:
        """Somebody stops the driver itself (a task is cancelled, ^C): the call ends here, and is written down."""
        if self.call.state == "in_flight":
            self.abandoned()
        elif self.call.state != "ended":
            self._told(self.call.cancel(clock().now()))
        self.hide()

    def cancelled(self) -> bool:
        """Somebody cancelled the call: its event, its handle or its run."""
        if self.cancel_reason is None:
            if self.options.cancel is not None and asked("cancel", self.options.cancel.is_set):
                self.cancel_reason = "its cancel event was set"
            elif self.run is not None and self.run.ended:
                self.cancel_reason = "its run has ended"
        return self.cancel_reason is not None

    def cancel(self, reason: str) -> None:
        """Cancels the call, from any thread."""
        self.cancel_reason = self.cancel_reason or reason
        self.wake()

    def snapshot(self) -> str:
        """The call as JSON; one whose cancellation the machine has not heard of yet does not go on either."""
        cancelled = self.call.state != "ended" and self.cancelled()
        return self.call.snapshot(clock().now(), clock().wall_ms(), cancelled=cancelled)

    def wake(self) -> None:
        """Ends a wait; the machine checks whether it was over."""
        for waker in tuple(self.wakers):
            waker()

    @property
    def number(self) -> int:
        """The number of the attempt that is spoken of: the latest, where there are not several."""
        return self._number or self.call.attempts

    @property
    def deaf(self) -> bool:
        """Nothing can end a wait early."""
        return self.options.cancel is None and self.run is None and not self.handled

    # --- how a call ends ---

    def close(self) -> None:
        """Lets go of what would keep frames alive, and leaves the run."""
        self.error = None
        self.value, self._answer = None, NO_ANSWER
        self.hide()
        if self.run is not None:
            self.run._part(self.wake)

    def trace(self) -> Trace:
        """The records so far."""
        return Trace(self.call.trace_id, [*self._hidden, *self.call.lines()])

    def finish(self, action: Action) -> Any:
        """The end as people write it: the value, or the exception raised."""
        if action.kind != "done":
            raise self.give_up(action)
        if self.options.meter is not None:
            attach(self.value, self.trace())
        return self.value

    def result(self, action: Action) -> Result[Any]:
        """The end as a value."""
        error = None if action.kind == "done" else self.give_up(action)
        return Result.of(self.value, error, action, self.call.failure, self.trace())

    def give_up(self, action: Action) -> Exception:
        """The exception that the call ends with: the user's own, with trace and note."""
        return exception_of(self, action)

    def advice(self, reason: str) -> str:
        """What else the note of a call that stopped for this reason says."""
        return ""

    # --- inside ---

    def _made(self, facts: Facts) -> Attempt:
        return Attempt(facts, clock().now())

    def _outcome(self, outcome: dict[str, Any] | str) -> Action:
        if self._shown and not isinstance(outcome, str):
            outcome.setdefault("delivered", self._shown)
        text = outcome if isinstance(outcome, str) else as_json(outcome)
        if self.options.meter is not None and (retries := self.options.meter.hidden()):
            self._report_hidden(retries)
        return self._told(self.call.on_outcome(clock().now(), self.number, text))

    def _outcome_of(self, error: Exception) -> dict[str, Any]:
        """Evidence for the core; with functions of the user's own, the failure and what they say of it."""
        options = self.options
        if isinstance(error, BadOutput) and error.value is self._answer and error.failure is not None:
            failure = error.failure
            control = failure.category == "control"
        else:
            evidence = self._evidence_of(error)
            if options.classify is None and options.retry_if is None and options.backoff is None:
                return {"evidence": evidence}
            failure = _native.classify(as_json(evidence), self.policy)
            control = failure.category == "control"
            if options.classify is not None and not control:
                failure = reclassified(options.classify, error, failure)
        outcome: dict[str, Any] = {"failure": json.loads(failure.to_json())}
        if options.retry_if is not None and not control:
            answer = asked("retry_if", truth_of(options.retry_if), error, failure)
            if answer is not None:
                outcome["retry_if"] = answer
        if options.backoff is not None:
            wait = asked("backoff", wait_of(options.backoff), failure, self.call.attempts_on_target)
            if wait is not None:
                outcome["backoff"] = wait
        return outcome

    def _refused(self) -> dict[str, Any]:
        """An answer that was refused is kept, and has used what it used."""
        answer, self._answer = self._answer, NO_ANSWER
        self.value = None if answer is NO_ANSWER else answer
        meter = self.options.meter
        usage = None if answer is NO_ANSWER else usage_of(answer) if meter is None else meter.usage(answer)
        return {"usage": usage} if usage else {}

    def _evidence_of(self, error: Exception) -> dict[str, Any]:
        evidence = evidence_of(error, self._inner)
        evidence["wall_now_ms"] = clock().wall_ms()
        if self._answer is not NO_ANSWER:
            evidence["in_check"] = True
        return evidence

    def _inner(self, error: BaseException) -> str | None:
        """The trace id of an inner call that failed: one that ended while this attempt ran. An exception that is raised
        again and again may still carry the trace of an earlier call, and that of a response the one of a success."""
        trace = attached(error)
        if trace is None or trace.made_at < self._since or (trace.ended or {}).get("outcome") == "success":
            return None
        return trace.trace_id

    def _told(self, action: Action) -> Action:
        """Hands records to the sink and events to the listener."""
        sink, listener = self.options.sink, self.options.on_event
        if sink is not None:
            lines = self.call.take_lines()
            if self._guards is not None:
                lines = self._guards._native.take_transitions() + lines
            for line in lines:
                asked("sink", writer_of(sink), line)
        if listener is not None:
            for line in self.call.take_events():
                asked("on_event", listener, json.loads(line))
        return action

    def _report_hidden(self, retries: int) -> None:
        """A record of its own: the client has retried by itself within an attempt."""
        facts = {"trace_id": self.call.trace_id, "attempt": self.call.attempts, "retries": retries}
        line = json.dumps({"record": "hidden_retries", **facts}, separators=(",", ":"))
        self._hidden.append(line)
        if self.options.sink is not None:
            asked("sink", writer_of(self.options.sink), line)


_SUCCESS = '{"success":{}}'
