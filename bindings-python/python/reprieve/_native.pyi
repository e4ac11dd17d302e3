"""The native half: the core's types as they are. Private: what users may import, `reprieve` re-exports.

Moments and spans are whole nanoseconds on the driver's clock, unless a name says otherwise. JSON crosses as text, so
that one grammar, the core's, reads it in every language.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, final

from ._current import Ids
from ._options import Caller
from .types import ActionKind, Category, Disposition, Kind, RetryAfterSource, StreamItem

__all__ = [
    "Action",
    "Call",
    "Failure",
    "Guards",
    "Policy",
    "Retrying",
    "Run",
    "classify",
    "current_frame",
    "fast_now",
    "kinds",
    "mask",
    "now",
    "parse_duration",
    "says",
    "set_fast",
    "stream_finishes",
    "stream_item",
    "timeline",
]

def now() -> int:
    """Monotonic nanoseconds on the clock that calls are timed with."""

def kinds() -> list[tuple[str, str, bool, bool]]:
    """Every kind with its category, whether it is the service's fault, and whether it raises an alert."""

def classify(evidence: str, policy: Policy | None = None) -> Failure:
    """Classifies evidence (JSON), with the rules of a policy where one is given. Raises `ConfigError`."""

def says(reason: str) -> str:
    """What a stop reason says to whoever is on call."""

def stream_item(event: str) -> StreamItem:
    """What one event of a stream (JSON) is: `held`, `content`, `end`, `content_end` or `error`."""

def stream_finishes(event: str) -> bool:
    """A stream of such events (JSON) ends with one that says so; without it, it was cut."""

def timeline(trace_id: str, lines: Sequence[str]) -> str:
    """A timeline of records, for people."""

def mask(text: str, off: Sequence[str] = ...) -> str:
    """The text with personal data and secrets masked; `off` names the sets to leave. Raises `ConfigError`."""

def parse_duration(value: object, unit_ns: int = 1_000_000_000) -> int:
    """A duration's nanoseconds: text with a unit, or a number of `unit_ns`. Raises `ConfigError`."""

def set_fast(on: bool) -> None:
    """Whether calls may take the happy path. Off under a virtual clock."""

def fast_now() -> int:
    """The time, or zero where the happy path may not be taken: it is off, or inside of a plain function's attempt."""

def current_frame(draw: Callable[[], Ids]) -> tuple[Caller, int, Ids] | None:
    """The innermost attempt on this thread that the happy path runs: for whom, when it began, and its ids, which
    `draw` makes the first time somebody asks."""

@final
class Policy:
    """A validated policy."""

    def __new__(cls, fields: Mapping[str, Any], start: Policy | None = None) -> Policy:
        """A policy of these fields over the empty one, or over `start`. Raises `ConfigError`."""

    @staticmethod
    def from_json(text: str) -> Policy: ...
    @staticmethod
    def preset(name: str) -> Policy: ...
    @staticmethod
    def preset_names() -> list[str]: ...
    @staticmethod
    def for_skill(id: str, manifests: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Policy: ...
    def to_json(self) -> str: ...
    def retries(self, kind: str) -> bool:
        """The kind is tried again by this policy."""

    def capped(self, most: int) -> Policy:
        """The same policy with no more than `most` attempts on any target."""

    @property
    def targets(self) -> list[str]:
        """The ids of the targets, in order."""

    @property
    def nested(self) -> str:
        """`bounded`, `independent` or `refuse`."""

    @property
    def guarded(self) -> bool:
        """The policy needs guards: a breaker, a retry budget, a cooldown or shedding is set."""

    @property
    def hedged(self) -> bool:
        """Slow attempts are joined by others."""

    @property
    def summary(self) -> str:
        """Attempts, time and targets, for people."""

    @property
    def max_attempts_of_first(self) -> int:
        """How many attempts the first target may get."""

    def ends_with(self, number: int) -> bool:
        """No attempt can follow this one, if it and all before it were made on the first target."""

    @property
    def first_timeout_ns(self) -> int:
        """How long the first attempt may take."""

    def delay_ns(
        self,
        kind: str,
        seed: int,
        attempt: int,
        n: int,
        *,
        previous_ns: int | None = None,
        retry_after_ns: int | None = None,
    ) -> int:
        """The wait after attempt `attempt`, the `n`th on its target, when any wait fits, in nanoseconds."""

    @property
    def connect_timeout(self) -> float | None:
        """How long a connection may take to open, in seconds."""

    @property
    def stream(self) -> tuple[str, int | None, int | None, int | None]:
        """Of streams: the mode, and the timeouts of the first item, of idleness and of silence, in nanoseconds."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Failure:
    """One classified failure."""

    def of(self, error: BaseException | None, value: object) -> Failure:
        """The same, with what it came from."""

    @property
    def error(self) -> BaseException | None:
        """What the attempt raised; there for a `repair`, and nowhere else."""

    @property
    def value(self) -> Any:
        """What the attempt answered and `check` refused; there for a `repair`, and nowhere else."""

    @property
    def kind(self) -> Kind:
        """What it is, such as `rate_limit`."""

    @property
    def category(self) -> Category:
        """`retriable`, `need_human`, `fatal` or `control`."""

    @property
    def code(self) -> str | None:
        """The provider's own code."""

    @property
    def message(self) -> str | None:
        """The provider's message, at most 8 KiB."""

    @property
    def retry_after(self) -> float | None:
        """How long the server asked to wait, in seconds."""

    @property
    def retry_after_source(self) -> RetryAfterSource | None:
        """Where that was found."""

    @property
    def decided_by(self) -> str:
        """Which rule decided the kind."""

    @property
    def retriable(self) -> bool:
        """Trying again may help."""

    @property
    def service_fault(self) -> bool:
        """It speaks against the service."""

    @property
    def alert(self) -> bool:
        """A person has to look at it."""

    @property
    def may_have_executed(self) -> bool:
        """The request may have had an effect on the server."""

    @property
    def retry_forbidden(self) -> bool:
        """The server said not to repeat."""

    @staticmethod
    def from_json(json: str) -> Failure:
        """A failure that somebody else classified, from JSON with at least `kind`. Raises `ConfigError`."""

    def to_json(self) -> str:
        """The failure as JSON, as an outcome takes it."""

    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleMethodOverride]

@final
class Action:
    """What to do next. Which of the fields are set follows from `kind`."""

    @property
    def kind(self) -> ActionKind:
        """`attempt`, `retry`, `fallback`, `pending`, `ignored`, `stop` or `done`."""

    @property
    def number(self) -> int | None:
        """Of an attempt: its number."""

    @property
    def target(self) -> str | None:
        """Of an attempt or fallback: the target's id."""

    @property
    def timeout_ns(self) -> int | None:
        """Of an attempt: how long it may take, in nanoseconds."""

    @property
    def timeout(self) -> float | None:
        """Of an attempt: how long it may take, in seconds."""

    @property
    def hedge_after_ns(self) -> int | None:
        """Of an attempt: how long after its start another may join it, in nanoseconds."""

    @property
    def hedge_after(self) -> float | None:
        """Of an attempt: how long after its start another may join it, in seconds."""

    @property
    def after_ns(self) -> int | None:
        """Of a retry or fallback: how long to sleep first, in nanoseconds."""

    @property
    def after(self) -> float | None:
        """Of a retry or fallback: how long to sleep first, in seconds."""

    @property
    def reason(self) -> str | None:
        """Of a retry, fallback or stop: why."""

    @property
    def disposition(self) -> Disposition | None:
        """Of a stop: `failed`, or `human` where a person has it now."""

    @property
    def resume_in_ns(self) -> int | None:
        """Of a stop: when it may work, in nanoseconds."""

    @property
    def resume_in(self) -> float | None:
        """Of a stop: when it may work, in seconds."""

    @property
    def discard(self) -> int | None:
        """Of a retry or fallback of a stream: how many items the consumer is to discard."""

    @property
    def resume(self) -> int | None:
        """Of a retry or fallback of a stream: how many items the function is to resume after."""

    def to_json(self) -> str:
        """The action as JSON, the same in every language."""

@final
class Call:
    """The raw machine of one call. Local guards are asked in place, so that there is no `ask` to answer.

    `begin` and `on_outcome` raise `MisuseError` where the state does not allow them.
    """

    def __new__(
        cls,
        policy: Policy,
        seed: int,
        *,
        ids: str | None = None,
        guards: Guards | None = None,
        run: Run | None = None,
        ends_by: int | None = None,
        recorded: bool = True,
        heard: bool = False,
        unmask: Sequence[str] = ...,
        repairs: Sequence[str] = ...,
    ) -> Call:
        """A call that has not begun. `ids` is JSON: `trace_id` and as needed `idempotency_key`, `scene`,
        `prompt_version`, `outer_trace_id`, `client`. `ends_by` is a moment. `repairs` are kinds that can be
        repaired."""

    @staticmethod
    def started(
        policy: Policy,
        seed: int,
        t0: int,
        *,
        ids: str | None = None,
        unmask: Sequence[str] = ...,
        repairs: Sequence[str] = ...,
    ) -> Call:
        """The call whose first attempt a driver began by itself at `t0`."""

    def begin(self, now_ns: int) -> Action: ...
    def on_outcome(self, now_ns: int, number: int, outcome: str) -> Action:
        """Takes an outcome (JSON: `success`, `failure` or `evidence`, and what stands beside them)."""

    def cancel(self, now_ns: int) -> Action: ...
    def first_item(self, now_ns: int, number: int | None = None) -> Action:
        """An attempt (the latest unless said) has its first item: `pending`, or `ignored` where another was first."""

    def hedge(self, now_ns: int) -> Action:
        """The latest attempt is slow: another that joins it, or `pending`."""

    def snapshot(self, now_ns: int, wall_now_ms: int, *, cancelled: bool = False) -> str: ...
    @staticmethod
    def restore(
        snapshot: str,
        now_ns: int,
        wall_now_ms: int,
        *,
        count_suspended: bool = True,
        guards: Guards | None = None,
        run: Run | None = None,
        ends_by: int | None = None,
        repairs: Sequence[str] = ...,
    ) -> tuple[Call, Action]:
        """The call of a snapshot, and its next action. Raises `SnapshotError`."""

    def take_lines(self) -> list[str]:
        """Record lines since the last time."""

    def take_events(self) -> list[str]:
        """Event lines since the last time."""

    def lines(self) -> list[str]:
        """Every record line so far."""

    @property
    def failure(self) -> Failure | None:
        """The last classified failure."""

    @property
    def state(self) -> str:
        """`ready`, `in_flight`, `waiting` or `ended`."""

    @property
    def attempts(self) -> int:
        """How many attempts were issued."""

    @property
    def attempts_on_target(self) -> int:
        """How many of them on the present target."""

    @property
    def is_last(self) -> bool:
        """No attempt can follow the one in flight."""

    @property
    def time_left_ns(self) -> int:
        """What is left of the call's time."""

    @property
    def trace_id(self) -> str:
        """The call's trace id, or nothing where it was given none."""

@final
class Guards:
    """Breakers, retry budgets, cooldowns and reported load."""

    def __new__(cls) -> Guards: ...
    def report(self, queue_depth: int | None = None, cost_ratio: float | None = None) -> None:
        """Takes a report of load. Raises `ConfigError`."""

    def reset(self) -> None:
        """Forgets everything: every breaker closed, every budget full."""

    def describe(self, now_ns: int | None = None) -> str:
        """What is open, cooling, benched or spent, as JSON."""

    def breaker_state(self, policy: Policy, target: str, now_ns: int | None = None) -> str | None:
        """`closed`, `open`, `half_open`, or nothing without a breaker."""

    def take_transitions(self) -> list[str]:
        """The changes of breakers since the last time, as JSON."""

@final
class Run:
    """A run: a budget, a deadline and a gate that its calls share."""

    def __new__(cls, config: str) -> Run:
        """A run of this JSON: attempts, tokens, cost, `deadline` (a moment), estimates. Raises `ConfigError`."""

    def cancel(self, reason: str) -> None: ...
    def end(self, state: str) -> None: ...
    def report(self) -> str:
        """Counts and budget, as JSON."""

    @property
    def ended(self) -> bool:
        """It was cancelled or has ended."""

@final
class Retrying:
    """A function under a policy. Calls it; a failure is handed to the driver, with the first attempt already made."""

    def __new__(cls, function: Callable[..., Any], owner: Caller, driver: Callable[..., Any], plain: bool) -> Retrying:
        """`driver(owner, function, args, kwargs, started)` runs the rest; `started` is the failed first attempt, or
        `None`. `plain`: nothing but the policy bounds the calls."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None, /) -> Any: ...
    def __getattribute__(self, name: str, /) -> Any:
        """`__call__` is a Python function here: Celery takes the module and the arguments of a task from there."""
