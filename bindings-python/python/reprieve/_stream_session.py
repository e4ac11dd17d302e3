"""One call whose attempts answer streams: what was delivered, and when; how it ends when its consumer leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _native
from ._clock import clock
from ._current import Attempt, Facts
from ._delivered import LAST, Items, Recorder
from ._errors import AttemptTimeout, StreamError
from ._evidence import chain_of
from ._request import Broken, checked_async
from ._session import Session
from ._stream_items import Reading, body_of
from ._stream_timers import Limits, Timers
from ._trace import Trace
from ._usage import main_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._native import Action
    from ._options import Caller
    from ._stream_source import Source


#: The longest span of time there is, in nanoseconds.
LONGEST = 90 * 86_400 * 10**9


@dataclass(frozen=True)
class Discard:
    """An item of a stream in mode `restart`: what its consumer has had so far is void, and the answer begins anew.

    >>> from reprieve import Discard, Policy
    >>> def words():
    ...     yield "once"
    ...     if len(tries) < 2:
    ...         tries.append(1)
    ...         raise ConnectionError
    >>> tries = [1]
    >>> policy = Policy(stream={"mode": "restart"}, backoff={"base": 0, "max": 0}, jitter={"kind": "none"})
    >>> [*policy.stream(words)]
    ['once', Discard(count=1), 'once']
    """

    #: How many items to discard: all since the beginning, or since the last `Discard`.
    count: int


class StreamAttempt(Attempt):
    """One attempt of a stream, as `current_attempt()` shows it to its source."""

    def __init__(self, facts: Facts, timers: Timers, delivered: Items, on_heard: Callable[[], None]) -> None:
        super().__init__(facts, clock().now())
        self.timers = timers
        #: What else happens when bytes have come.
        self.on_heard = on_heard
        self._delivered = delivered
        #: Once its first item is there, no timeout of attempt or call bounds it.
        self.bound = True

    @property
    def delivered(self) -> Sequence[Any]:
        return tuple(self._delivered)

    @property
    def ends_by(self) -> int:
        return super().ends_by if self.bound else clock().now() + LONGEST

    def heard(self) -> None:
        if not self.ended:
            self.timers.hear()
            self.on_heard()


class Stalled(Exception):
    """A timer has run out while items came that are no data."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class StreamSession(Session):
    """One call. What its drivers do with an item, they ask here only until the first content."""

    def __init__(self, owner: Caller, kwargs: dict[str, Any], *, interrupted: bool) -> None:
        super().__init__(owner, kwargs, recorded=True)
        self.limits = Limits(*self.policy.stream)
        self.buffered = self.limits.mode == "buffered"
        #: What the consumer has had, since the last `Discard`.
        self.delivered = Items()
        #: What attempts have brought: the same, or that of an attempt which is to be whole first.
        self.got = self.delivered
        self.reading = Reading()
        #: The driver interrupts an attempt whose timer runs out; else it is the transport that notices.
        self._interrupted = interrupted
        #: What the transport was told, and the words for it.
        self._late: tuple[AttemptTimeout, str] | None = None
        #: How many items were delivered before this attempt.
        self._before = 0
        #: What is still to be delivered when the call has ended.
        self.rest: Iterable[Any] = ()
        #: What can make the items of this attempt again, where nobody needs all of them in the end.
        self._recorder: Recorder | None = None
        self._committed: int | None = None
        self._opened = False
        #: The server has answered, as far as that is known: what fails now fails amid the answer.
        self._answering = False

    # --- one attempt ---

    def attempt(self, action: Action) -> StreamAttempt:
        """Makes an attempt, which the driver makes visible whenever its source runs."""
        assert action.number is not None
        assert action.target is not None
        assert action.timeout_ns is not None
        timers = Timers(self.limits, action.timeout_ns, _native.now if self._interrupted else clock().now)
        facts = Facts(
            action.number,
            action.target,
            timers.first_item,
            self.call.is_last,
            self.policy.connect_timeout,
            self.run,
        )
        made = StreamAttempt(facts, timers, self.delivered, self._check)
        made.named(self._ids)
        self._attempt, self._since = made, _native.now()
        if self.buffered:
            self.got = Items()
        self.reading, self._before = Reading(goes_on=bool(self.delivered)), len(self.got)
        self._committed, self._opened, self._answering = None, False, False
        return made

    def opened(self, source: Source) -> None:
        """The attempt's function has answered."""
        self._opened, self._answering, self.reading.client = True, not source.lazy, source.client
        self._recorder = source.recorder if not self.buffered and self.options.check is None else None

    def commit(self) -> list[Any]:
        """The first content is there: it, with what was held back."""
        attempt = self._attempt
        assert isinstance(attempt, StreamAttempt)
        now = clock().now()
        self.call.first_item(now)
        attempt.timers.content = True
        if not self.buffered:
            self._committed, attempt.bound = now, False
        return self.reading.held

    def keeping(self) -> Callable[[Any], None]:
        """What keeps each item that comes after the first content."""
        return self.got.keeping(self._recorder)

    def look(self, attempt: StreamAttempt, item: Any) -> None:
        """Looks at an item amid the answer. Raises where it, or the time that pings have filled, ends the attempt."""
        if self.reading.is_data(item):
            attempt.timers.data()
        else:
            attempt.timers.ping()
            if words := attempt.timers.overdue:
                raise Stalled(words)

    @property
    def items(self) -> list[Any]:
        """The last ones that this attempt has brought."""
        return self.got.last(min(len(self.got) - self._before, LAST))

    def hide(self) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt.ended, self._answer = True, attempt.answer

    # --- its outcome ---

    def ended(self, error: Exception) -> Action:
        """The attempt's source has no more, or it has failed."""
        if not self._is_end(error):
            return self._failing(error)
        try:
            self.reading.end(self._held or self.items)
            if self.options.check is not None:
                self.check(self._answered)
        except Exception as fault:
            return self._failing(fault)
        return self._done()

    async def ended_async(self, error: Exception) -> Action:
        """The same, where `check` may be a coroutine function."""
        if not self._is_end(error):
            return self._failing(error)
        try:
            self.reading.end(self._held or self.items)
            check, attempt = self.options.check, self._attempt
            if check is not None and attempt is not None:
                attempt.answer = self._answered
                await checked_async(check, attempt.answer)
        except Exception as fault:
            return self._failing(fault)
        return self._done()

    def stalled(self, words: str) -> Action:
        """A timer has run out."""
        self.hide()
        message = f"attempt {self.call.attempts} {words}"
        own = self.options.meter.timed_out() if self.options.meter else None
        self.error = own or AttemptTimeout(message, attempts=self.call.attempts)
        return self._outcome({"failure": {"kind": "timeout", "message": message}})

    def left(self) -> None:
        """The consumer wants no more. Where it has had the finish frame it has had the whole answer."""
        if self.call.state == "in_flight" and self._committed is not None:
            try:
                if self.reading.is_finished(self.items):
                    self._succeeded()
            except StreamError as error:
                self.failed(error)
        self.stopped_outside()

    def discard(self, count: int) -> Discard:
        """What the consumer gets before its items come again."""
        self.delivered.clear()
        return Discard(count)

    def trace(self) -> Trace:
        return Trace(self.call.trace_id, [*self.call.lines(), *self._hidden], self.delivered.copy())

    # --- inside ---

    def _is_end(self, error: Exception) -> bool:
        return self._opened and isinstance(error, (StopIteration, StopAsyncIteration))

    @property
    def _answered(self) -> list[Any]:
        """The answer, once there is no more of it."""
        return [*self.got, *self._held]

    @property
    def _held(self) -> list[Any]:
        return [] if self.reading.content else self.reading.held

    def _failing(self, fault: Exception) -> Action:
        if isinstance(fault, Broken):
            return self.broken(fault)
        words = fault.words if isinstance(fault, Stalled) else self._told_in(fault)
        return self.failed(fault) if words is None else self.stalled(words)

    def _told_in(self, fault: Exception) -> str | None:
        """What a transport was told, if this came of it: a client makes an error of its own of that."""
        if self._late is None or self._late[0] not in chain_of(fault):
            return None
        return self._late[1]

    def _done(self) -> Action:
        held = self._held
        self.got += held
        self.rest = self.got if self.buffered else held
        self.delivered = self.got
        return self._succeeded()

    def _succeeded(self) -> Action:
        self.hide()
        self.error = None
        return self._outcome({"success": {}})

    def _check(self) -> None:
        """A plain function's stream cannot be interrupted: its transport is told when it is too late."""
        attempt = self._attempt
        if not self._interrupted and isinstance(attempt, StreamAttempt) and (words := attempt.timers.overdue):
            late = AttemptTimeout(f"attempt {self.call.attempts} {words}", attempts=self.call.attempts)
            self._late = late, words
            raise late

    def _evidence_of(self, error: Exception) -> dict[str, Any]:
        evidence = super()._evidence_of(error)
        if isinstance(error, StreamError) and error.trace is None:
            evidence = {"status": 200, "message": str(error), "wall_now_ms": evidence["wall_now_ms"]}
            if error.event is not None:
                evidence["body"] = body_of(error.event)
            if error.code is not None:
                evidence["provider_code"] = error.code
            evidence["in_stream"] = error.code != "empty_answer"  # which has come to its end
        elif self._answering or self.reading.held:
            evidence["in_stream"] = True
        return evidence

    def _outcome(self, outcome: dict[str, Any] | str) -> Action:
        assert isinstance(outcome, dict)
        outcome["delivered"] = len(self.delivered)
        if self._committed is not None:
            outcome["delivering"] = clock().now() - self._committed
        details, meter = self.reading.usage(self.items), self.options.meter
        usage = main_of(details) if meter is None else meter.priced(details)
        return super()._outcome({**outcome, "usage": usage} if usage else outcome)
