"""One call whose attempts answer streams: what each attempt has brought, what was delivered, and when; how it ends when
its consumer leaves."""

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
from ._request import Broken
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

    def __init__(
        self, facts: Facts, timers: Timers, delivered: Items, got: Items, on_heard: Callable[[], None]
    ) -> None:
        super().__init__(facts, clock().now())
        self.timers = timers
        #: How long its source may be without a byte, in nanoseconds, where nothing but its client can tell.
        self.silence: int | None = None
        #: What else happens when bytes have come.
        self.on_heard = on_heard
        #: What attempts have brought: what the consumer has had, or a list of its own where it is to be whole first.
        self.got = got
        self.reading = Reading(goes_on=bool(delivered))
        #: When its first item was there for the consumer: no timeout of attempt or call bounds it any more.
        self.committed: int | None = None
        #: Its function has answered.
        self.is_open = False
        #: The server has answered, as far as that is known: what fails now fails amid the answer.
        self.answering = False
        #: What can make its items again.
        self.recorder: Recorder | None = None
        self._delivered = delivered
        self._before = len(got)

    @property
    def delivered(self) -> Sequence[Any]:
        return tuple(self._delivered)

    @property
    def read_timeout(self) -> float:
        return self.timeout if self.silence is None else min(self.silence / 1e9, self.timeout)

    @property
    def ends_by(self) -> int:
        return super().ends_by if self.committed is None else clock().now() + LONGEST

    @property
    def items(self) -> list[Any]:
        """The last ones that it has brought."""
        return self.got.last(min(len(self.got) - self._before, LAST))

    @property
    def held(self) -> list[Any]:
        """What it holds back."""
        return [] if self.reading.content else self.reading.held

    @property
    def whole(self) -> list[Any]:
        """The answer, once there is no more of it."""
        return [*self.got, *self.held]

    def opened(self, source: Source) -> None:
        """Its function has answered."""
        self.is_open, self.answering, self.reading.client = True, not source.lazy, source.client
        self.recorder = source.recorder

    def is_end(self, error: Exception) -> bool:
        """Whether this says that its source has no more."""
        return self.is_open and isinstance(error, (StopIteration, StopAsyncIteration))

    def end(self) -> None:
        """Its source has no more. Raises `StreamError` where that is no whole answer."""
        self.reading.end(self.held or self.items)

    def look(self, item: Any) -> None:
        """Looks at an item amid the answer. Raises where it, or the time that pings have filled, ends the attempt."""
        if self.reading.is_data(item):
            self.timers.data()
        else:
            self.timers.ping()
            if words := self.timers.overdue:
                raise Stalled(words)

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
        #: The driver interrupts an attempt whose timer runs out; else it is the transport that notices.
        self._interrupted = interrupted
        #: What the transport was told, and the words for it.
        self._late: tuple[AttemptTimeout, str] | None = None
        #: What is still to be delivered when the call has ended.
        self.rest: Iterable[Any] = ()
        #: The attempt that is spoken of, also when it is over.
        self._latest: StreamAttempt

    # --- one attempt ---

    def attempt(self, action: Action) -> StreamAttempt:
        """Makes an attempt, which the driver makes visible whenever its source runs."""
        self.beside(action)
        return self._latest

    def commit(self, attempt: StreamAttempt) -> list[Any]:
        """Its first content is there: it, with what was held back."""
        now = clock().now()
        self.call.first_item(now, attempt.number)
        self.turn_to(attempt)
        attempt.timers.content = True
        if not self.buffered:
            attempt.committed = now
        return attempt.reading.held

    def keeping(self, attempt: StreamAttempt) -> Callable[[Any], None]:
        """What keeps each item after the first content: as its text, where nobody needs all of them in the end."""
        needed = self.buffered or self.options.check is not None
        return attempt.got.keeping(None if needed else attempt.recorder)

    def turn_to(self, attempt: Attempt) -> None:
        assert isinstance(attempt, StreamAttempt)
        self._latest = attempt
        super().turn_to(attempt)

    # --- its outcome ---

    def ended(self, error: Exception) -> Action:
        """The attempt's source has no more, or it has failed."""
        if not self._latest.is_end(error):
            return self.failing(error)
        try:
            self._latest.end()
            if self.options.check is not None:
                self.check(self._latest.whole)
        except Exception as fault:
            return self.failing(fault)
        return self.done()

    def failing(self, fault: Exception) -> Action:
        """It has failed, or its answer is none."""
        if isinstance(fault, Broken):
            return self.broken(fault)
        words = fault.words if isinstance(fault, Stalled) else self._told_in(fault)
        return self.failed(fault) if words is None else self.stalled(words)

    def done(self) -> Action:
        """Its answer is whole."""
        got, held = self._latest.got, self._latest.held
        got += held
        self.rest = got if self.buffered else held
        self.delivered = got
        return self._succeeded()

    def stalled(self, words: str) -> Action:
        """A timer has run out."""
        self.hide()
        message = f"attempt {self.number} {words}"
        own = self.options.meter.timed_out() if self.options.meter else None
        self.error = own or AttemptTimeout(message, attempts=self.number)
        return self._outcome({"failure": {"kind": "timeout", "message": message}})

    def left(self) -> None:
        """The consumer wants no more. Where it has had the finish frame it has had the whole answer."""
        if self.call.state == "in_flight" and self._latest.committed is not None:
            try:
                if self._latest.reading.is_finished(self._latest.items):
                    self._succeeded()
            except StreamError as error:
                self.failed(error)
        self.stopped_outside()

    def discard(self, count: int) -> Discard:
        """What the consumer gets before its items come again."""
        self.delivered.clear()
        return Discard(count)

    def close(self) -> None:
        super().close()
        vars(self).pop("_latest", None)  # it leads back here

    def trace(self) -> Trace:
        return Trace(self.call.trace_id, [*self._hidden, *self.call.lines()], self.delivered.copy())

    # --- inside ---

    def _made(self, facts: Facts) -> StreamAttempt:
        timers = Timers(self.limits, facts.timeout_ns, _native.now if self._interrupted else clock().now)
        facts = facts._replace(timeout_ns=timers.first_item)
        got = Items() if self.buffered else self.delivered
        self._latest = StreamAttempt(facts, timers, self.delivered, got, self._check)
        if not self._interrupted:
            self._latest.silence = self.limits.silence
        return self._latest

    def _told_in(self, fault: Exception) -> str | None:
        """What a transport was told, if this came of it: a client makes an error of its own of that."""
        if self._late is None or self._late[0] not in chain_of(fault):
            return None
        return self._late[1]

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
        elif self._latest.answering or self._latest.reading.held:
            evidence["in_stream"] = True
        return evidence

    def _outcome(self, outcome: dict[str, Any] | str) -> Action:
        assert isinstance(outcome, dict)
        outcome["delivered"] = len(self.delivered)
        attempt, meter = self._latest, self.options.meter
        if attempt.committed is not None:
            outcome["delivering"] = clock().now() - attempt.committed
        details = attempt.reading.usage(attempt.items)
        usage = main_of(details) if meter is None else meter.priced(details)
        return super()._outcome({**outcome, "usage": usage} if usage else outcome)
