"""Types for annotations: the names a policy knows, and the fields it takes.

They say to an editor and a type checker what the core checks when a policy is made. Nothing of this is needed to run.

>>> from reprieve import Policy
>>> from reprieve.types import PolicyFields
>>> fields: PolicyFields = {"max_attempts": 5, "total_timeout": "30s"}
>>> Policy(**fields).to_json() == Policy(max_attempts=5, total_timeout=30).to_json()
True
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict

if TYPE_CHECKING:
    from ._guards import Guards, Run
    from ._native import Failure

__all__ = [
    "ActionKind",
    "BackoffFields",
    "BreakerFields",
    "CallOptions",
    "Category",
    "CooldownFields",
    "Disposition",
    "Duration",
    "Event",
    "EvidenceFields",
    "HedgeFields",
    "JitterFields",
    "Kind",
    "KindFields",
    "PolicyFields",
    "PresetName",
    "Price",
    "Request",
    "RetryAfterFields",
    "RetryAfterSource",
    "RetryBudgetFields",
    "RuleFields",
    "ShedFields",
    "StopReason",
    "StreamFields",
    "StreamItem",
    "TargetFields",
    "WhenFields",
    "Writable",
]

Duration = float | str | timedelta
"""A number of seconds, text with a unit (`"300ms"`, `"1.5s"`, `"2m"`), or a `timedelta`."""

Kind = Literal[
    "timeout",
    "transport",
    "rate_limit",
    "overloaded",
    "server_error",
    "model_not_ready",
    "stream_interrupted",
    "conflict",
    "interrupted",
    "invalid_output",
    "parse_error",
    "schema_invalid",
    "bad_request",
    "auth_failed",
    "permission_denied",
    "not_found",
    "billing",
    "quota_exhausted",
    "unknown",
    "content_filtered",
    "context_length_exceeded",
    "truncated",
    "business_rejection",
    "no_evidence",
    "cancelled",
    "budget_exhausted",
    "circuit_open",
    "shed",
]
"""What a failure was classified as."""

Category = Literal["retriable", "need_human", "fatal", "control"]
"""What a kind means for the call."""

RetryAfterSource = Literal["header", "body", "message", "reset"]
"""Where a retry-after was found."""

ActionKind = Literal["attempt", "retry", "fallback", "pending", "ignored", "stop", "done"]
"""What a driver is told to do."""

StopReason = Literal[
    "not_retryable",
    "attempts_exhausted",
    "deadline_exceeded",
    "retry_after_too_long",
    "wait_exhausted",
    "retry_budget_exhausted",
    "run_budget_exhausted",
    "circuit_open",
    "cooling_down",
    "limited",
    "shed",
    "cancelled",
    "already_delivered",
    "unsafe_to_repeat",
]
"""Why a call stopped."""

StreamItem = Literal["held", "content", "end", "content_end", "error"]
"""What one event of a stream is: nothing to show yet, content, the answer's end, both, or a failure."""

Disposition = Literal["failed", "human"]
"""Who has a call that stopped: nobody, or a person."""

PresetName = Literal[
    "interactive",
    "batch",
    "reasoning",
    "router",
    "guard",
    "tool",
    "llm",
    "chat_model",
    "aws_standard",
    "single",
]
"""The ready-made policies."""


class BackoffFields(TypedDict, total=False):
    """How the wait grows from attempt to attempt.

    - `kind` (`exponential`, or `schedule` where there are `delays`): the curve.
    - `base` (500 ms), `max` (20 s; of `constant` and `schedule` their own longest): the first wait, and the longest.
    - `factor` (2) of `exponential`; `delays` of `schedule`, of which the last one repeats.
    """

    kind: Literal["constant", "linear", "exponential", "decorrelated", "schedule"]
    base: Duration
    factor: float
    max: Duration
    delays: Sequence[Duration]


class JitterFields(TypedDict, total=False):
    """How the wait is spread: `kind` (`lower_bounded`, which keeps 1 - `ratio` of it), `ratio` (0.5, from 0 to 1)."""

    kind: Literal["none", "full", "lower_bounded", "proportional", "additive"]
    ratio: float


class RetryAfterFields(TypedDict, total=False):
    """How a server's own wish is honoured: `max` (60 s) is the longest that is waited for, `spread` (0.1, from 0 to 1)
    the share of it that is added at random."""

    max: Duration
    spread: float


class KindFields(TypedDict, total=False):
    """What differs for one kind of failure. `max_attempts` only lowers."""

    backoff: BackoffFields
    jitter: JitterFields
    max_attempts: int


class WhenFields(TypedDict, total=False):
    """The conditions of a rule; all that are given must hold."""

    error: str
    status: int
    code: str
    type: str
    message: str


class RuleFields(TypedDict):
    """What a failure is, where these conditions hold."""

    when: WhenFields
    kind: Kind


class _Identified(TypedDict):
    id: str


class TargetFields(_Identified, total=False):
    """What attempts are aimed at.

    - `id`: its name, unique in the policy.
    - `account`, `upstream` (the id): whose limits, quota, bill and credentials it uses; which service it reaches.
    - `max_attempts`, `attempt_timeout` (the policy's): its own.
    """

    account: str | None
    upstream: str | None
    max_attempts: int
    attempt_timeout: Duration | None


class BreakerFields(TypedDict, total=False):
    """When a circuit breaker opens, and for how long.

    - `consecutive_failures` (5): failed calls in a row that open it. Or `ratio`, the share of failed calls that does,
      above 0 and up to 1, over `window` (10 s) once there are `min_calls` (20) in it.
    - `open_for` (30 s): how long it stays open the first time; each failed probe doubles that, up to `open_for_max`
      (5 min).
    - `probe_lease` (60 s): how long a probe may take before another may probe.
    """

    consecutive_failures: int
    window: Duration
    min_calls: int
    ratio: float
    open_for: Duration
    open_for_max: Duration
    probe_lease: Duration


class RetryBudgetFields(TypedDict, total=False):
    """How many retries a target may have.

    - A bucket, as in AWS's standard mode: `capacity` (500) tokens; a retry costs `retry_cost` (14), one after
      `rate_limit` or `overloaded` `throttle_cost` (5); a success at the first try adds `refund` (1).
    - Or a share of the requests: `ratio` (0.2) of those in `window` (10 s), and `min_per_second` (10) in any case.
    """

    capacity: int
    retry_cost: int
    throttle_cost: int
    refund: int
    ratio: float
    min_per_second: int
    window: Duration


class CooldownFields(TypedDict, total=False):
    """How one call's throttling holds back the others: `max` (5 min) is the longest; `bench` (5 min) is for an account
    whose money, quota or credentials are out, where no retry-after says."""

    max: Duration
    bench: Duration


class ShedFields(TypedDict, total=False):
    """The load above which calls are refused whose `priority` is below `below_priority` (5): a reported `queue_depth`,
    or `cost_ratio`, the share of what may be spent."""

    queue_depth: int | None
    cost_ratio: float | None
    below_priority: int


class _Delayed(TypedDict):
    after: Duration


class HedgeFields(_Delayed, total=False):
    """When a slow attempt is joined by another, by at most `max` (1): `after` this time without answer or first item.
    For coroutines and their streams under asyncio; plain functions and trio go on without, HTTP layers refuse it."""

    max: int


class StreamFields(TypedDict, total=False):
    """How streams are retried and timed. Timers count only while the source is waited for; none is set by default."""

    mode: Literal["before_first_item", "buffered", "restart", "resume"]
    #: From the beginning of an attempt to its first content; never more than the attempt itself may take.
    first_item_timeout: Duration | None
    #: Between two events that are data, once there was one.
    idle_timeout: Duration | None
    #: Without any byte at all, a ping's neither.
    silence_timeout: Duration | None


class PolicyFields(TypedDict, total=False):
    """Everything a policy takes. What is left out stays as it is in the empty policy, or in the one replaced.

    - `max_attempts` (3): attempts on each target, the first one included. `max_attempts_total` (no bound): over all.
    - `connect_timeout` (the client's own), `attempt_timeout` (the time left): your client has `current_attempt()`'s.
    - `total_timeout` (10 min): the call, with all attempts and waits; of a stream, until its first content.
    - `min_attempt_time` (0): with less time left no attempt is started. `max_total_wait` (no bound): all its waits.
    - `backoff`, `jitter`, `retry_after`: how long is waited between attempts.
    - `retry_on` (every retriable kind): what is tried again on the same target. `fallback_on` (`quota_exhausted`,
      `billing`, `not_found`): what goes to the next target at once.
    - `kinds`: what differs for one kind. `rules`: your own rules of classification; the first that holds.
    - `side_effects` (`idempotent`): with `unsafe`, what may have been executed is never repeated.
    - `nested` (`bounded`): what an inner call has retried is not retried again; `independent`: it is; `refuse` raises.
    - `requires_human_fallback` (false): what failed everywhere goes to a person. `priority` (5): lower is shed first.
    - `targets` (one, `primary`): what attempts are aimed at, in order.
    - `breaker`, `retry_budget`, `cooldown`, `shed`, `hedge` (none), `stream`: as their own fields say.
    """

    max_attempts: int
    connect_timeout: Duration | None
    attempt_timeout: Duration | None
    total_timeout: Duration
    min_attempt_time: Duration
    max_total_wait: Duration | None
    max_attempts_total: int | None
    backoff: BackoffFields
    jitter: JitterFields
    retry_after: RetryAfterFields
    retry_on: Sequence[Kind]
    fallback_on: Sequence[Kind]
    kinds: Mapping[Kind, KindFields]
    rules: Sequence[RuleFields]
    side_effects: Literal["idempotent", "unsafe"]
    nested: Literal["bounded", "independent", "refuse"]
    requires_human_fallback: bool
    priority: int
    targets: Sequence[TargetFields]
    breaker: BreakerFields | None
    retry_budget: RetryBudgetFields | None
    cooldown: CooldownFields | None
    shed: ShedFields | None
    hedge: HedgeFields | None
    stream: StreamFields


class Event(Protocol):
    """What cancels: a `threading.Event`, an `asyncio.Event`, a `trio.Event`."""

    def is_set(self) -> bool: ...


class Writable(Protocol):
    """An open file, as a sink."""

    def write(self, text: str, /) -> object: ...


Request = Mapping[str, Any]
"""The keyword arguments of a call, as `prepare` and `repair` change them."""


class CallOptions(TypedDict, total=False):
    """Everything that `bind` takes. `None` takes a thing back."""

    scene: str | None
    prompt_version: str | None
    trace_id: str | None
    seed: int | None
    idempotency_key: str | None
    classify: Callable[[Exception], str | Failure | None] | None
    retry_if: Callable[[Exception, Failure], bool] | None
    backoff: Callable[[Failure, int], Duration | None] | None
    targets: Mapping[str, Callable[..., Any]] | None
    guards: Guards | None
    run: Run | None
    sink: Callable[[str], object] | Writable | None
    on_event: Callable[[dict[str, Any]], object] | None
    cancel: Event | None
    on_give_up: Literal["original", "wrapped"] | None
    unmask: Iterable[str] | None
    check: Callable[[Any], object] | None
    prepare: Callable[[dict[str, Any], str], Request | Awaitable[Request | None] | None] | None
    repair: Mapping[Kind, Callable[[dict[str, Any], Failure], Request | Awaitable[Request | None] | None]] | None


class _Price(TypedDict):
    input: float
    output: float


class Price(_Price, total=False):
    """What a million tokens of a model cost. What is read from a cache or written into one costs `input` by default."""

    cached_input: float
    cache_write: float
    currency: str


class EvidenceFields(TypedDict, total=False):
    """The raw facts of one failure, as far as they are known."""

    status: int
    headers: Mapping[str, str] | Sequence[tuple[str, str]]
    body: object
    message: str
    error_types: Sequence[str]
    os_code: str
    provider_code: str
    provider_type: str
    in_stream: bool
    in_check: bool
    cancelled: bool
    inner_trace: str
    wall_now_ms: int
