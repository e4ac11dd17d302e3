/** Types for annotations: the names that a policy knows, and the fields and options it takes. */
import type { Attempt } from "./attempt.js";
import type { Failure } from "./failure.js";
import type { Guards, Run } from "./guards.js";

/** A number of milliseconds, or text with a unit (`"300ms"`, `"1.5s"`, `"2m"`). */
export type Duration = number | string;

/** What a failure was classified as. */
export type Kind =
  | "timeout"
  | "transport"
  | "rate_limit"
  | "overloaded"
  | "server_error"
  | "model_not_ready"
  | "stream_interrupted"
  | "conflict"
  | "interrupted"
  | "invalid_output"
  | "parse_error"
  | "schema_invalid"
  | "bad_request"
  | "auth_failed"
  | "permission_denied"
  | "not_found"
  | "billing"
  | "quota_exhausted"
  | "unknown"
  | "content_filtered"
  | "context_length_exceeded"
  | "truncated"
  | "business_rejection"
  | "no_evidence"
  | "cancelled"
  | "budget_exhausted"
  | "circuit_open"
  | "shed";

/** What a kind means for the call. */
export type Category = "retriable" | "need_human" | "fatal" | "control";

/** Where a retry-after was found. */
export type RetryAfterSource = "header" | "body" | "message" | "reset";

/** Why a call stopped. */
export type StopReason =
  | "not_retryable"
  | "attempts_exhausted"
  | "deadline_exceeded"
  | "retry_after_too_long"
  | "wait_exhausted"
  | "retry_budget_exhausted"
  | "run_budget_exhausted"
  | "circuit_open"
  | "cooling_down"
  | "limited"
  | "shed"
  | "cancelled"
  | "already_delivered"
  | "unsafe_to_repeat";

/** Who has a call that stopped: nobody, or a person. */
export type Disposition = "failed" | "human";

/** The ready-made policies. */
export type PresetName =
  | "interactive"
  | "batch"
  | "reasoning"
  | "router"
  | "guard"
  | "tool"
  | "llm"
  | "chat_model"
  | "aws_standard"
  | "single";

/** How the wait grows from attempt to attempt. */
export interface BackoffFields {
  /** Default `exponential`; `schedule` where there are `delays`. */
  kind?: "constant" | "linear" | "exponential" | "decorrelated" | "schedule" | undefined;
  /** The first wait. Default 500 ms. */
  base?: Duration | undefined;
  /** Of `exponential`: how much longer each wait is than the one before. Default 2. */
  factor?: number | undefined;
  /** The longest wait. Default 20 s; of `constant` and `schedule` their own longest. */
  max?: Duration | undefined;
  /** Of `schedule`: the waits in order; the last one repeats. */
  delays?: readonly Duration[] | undefined;
}

/** How the wait is spread. */
export interface JitterFields {
  /** Default `lower_bounded`: from 1 - `ratio` of the wait to all of it. */
  kind?: "none" | "full" | "lower_bounded" | "proportional" | "additive" | undefined;
  /** From 0 to 1. Default 0.5; `none` and `full` have none. */
  ratio?: number | undefined;
}

/** How a server's own wish is honoured. */
export interface RetryAfterFields {
  /** The longest that is waited for, inclusive. Default 60 s. */
  max?: Duration | undefined;
  /** The share of it that is added at random, from 0 to 1. Default 0.1. */
  spread?: number | undefined;
}

/** What differs for one kind of failure. `maxAttempts` only lowers. */
export interface KindFields {
  backoff?: BackoffFields | undefined;
  jitter?: JitterFields | undefined;
  maxAttempts?: number | undefined;
}

/** What a failure is, where all of these conditions hold. */
export interface RuleFields {
  when: {
    error?: string | undefined;
    status?: number | undefined;
    code?: string | undefined;
    type?: string | undefined;
    message?: string | undefined;
  };
  kind: Kind;
}

/** What attempts are aimed at. `account` and `upstream` name what it shares with other targets. */
export interface TargetFields {
  /** Its name, unique in the policy. */
  id: string;
  /** Whose limits, quota, bill and credentials it uses. Default: the id. */
  account?: string | null | undefined;
  /** Which service it reaches. Default: the id. */
  upstream?: string | null | undefined;
  /** Attempts on this target. Default: the policy's. */
  maxAttempts?: number | undefined;
  /** Time for one attempt on this target. Default: the policy's. */
  attemptTimeout?: Duration | null | undefined;
}

/** When a breaker opens, and for how long: `consecutiveFailures`, or `ratio` with `window` and `minCalls`. */
export interface BreakerFields {
  /** Failed calls in a row that open it. Default 5. */
  consecutiveFailures?: number | undefined;
  /** Of `ratio`: the time that is looked back on. Default 10 s. */
  window?: Duration | undefined;
  /** Of `ratio`: the least calls in the window. Default 20. */
  minCalls?: number | undefined;
  /** The share of failed calls that opens it, inclusive: above 0, up to 1. */
  ratio?: number | undefined;
  /** How long it stays open the first time. Default 30 s. */
  openFor?: Duration | undefined;
  /** The longest it stays open; each failed probe doubles the time. Default 5 min. */
  openForMax?: Duration | undefined;
  /** How long a probe may take before another may probe. Default 60 s. */
  probeLease?: Duration | undefined;
}

/** How many retries a target may have: a bucket (`capacity` and costs), or a `ratio` with `minPerSecond`, `window`. */
export interface RetryBudgetFields {
  /** Tokens at the start, and at most. Default 500, as the next three AWS's standard mode. */
  capacity?: number | undefined;
  /** What a retry costs. Default 14. */
  retryCost?: number | undefined;
  /** What a retry after `rate_limit` or `overloaded` costs. Default 5. */
  throttleCost?: number | undefined;
  /** What a success at the first try adds. Default 1. */
  refund?: number | undefined;
  /** Retries for each request, from 0 to 1. Default 0.2, where one of these three is given. */
  ratio?: number | undefined;
  /** Retries in a second that are allowed whatever the requests. Default 10. */
  minPerSecond?: number | undefined;
  /** The time that is looked back on. Default 10 s. */
  window?: Duration | undefined;
}

/** How long one call's throttling holds back the others, and how long an account is benched. */
export interface CooldownFields {
  /** The longest cooldown. Default 5 min. */
  max?: Duration | undefined;
  /** How long an account is benched where no retry-after says. Default 5 min. */
  bench?: Duration | undefined;
}

/** The load above which calls below a priority are refused. */
export interface ShedFields {
  /** A reported queue depth above this sheds. */
  queueDepth?: number | null | undefined;
  /** A reported share of what may be spent above this sheds. */
  costRatio?: number | null | undefined;
  /** Calls with a lower `priority` than this are shed. Default 5. */
  belowPriority?: number | undefined;
}

/**
 * When a slow attempt is joined by another beside it, at the same target: the first answer, or the first item of a stream,
 * is the one, and the others are abandoned. `wrapFetch` refuses it.
 */
export interface HedgeFields {
  /** How long the latest attempt may be without an answer or a first item before another joins it. */
  after: Duration;
  /** How many may join one attempt. Default 1. */
  max?: number | undefined;
}

/** How streams are retried and timed. */
export interface StreamFields {
  /** What follows when it breaks after its first content. Default `before_first_item`: it stops. */
  mode?: "before_first_item" | "buffered" | "restart" | "resume" | undefined;
  /** From the beginning of an attempt to its first content. */
  firstItemTimeout?: Duration | null | undefined;
  /** Between two events that are data, while the source is waited for. */
  idleTimeout?: Duration | null | undefined;
  /** Without any byte at all. */
  silenceTimeout?: Duration | null | undefined;
}

/** Everything a policy takes. What is left out stays as it is in the empty policy, or in the one it is based on. */
export interface PolicyFields {
  /** Attempts on each target, the first one included. Default 3. */
  maxAttempts?: number | undefined;
  /** Opening a connection: `attempt.connectTimeout` is there for your client. Default: its own. */
  connectTimeout?: Duration | null | undefined;
  /** One attempt, and never more than the time left. Default: the time left. */
  attemptTimeout?: Duration | null | undefined;
  /** The call: all attempts and waits; of a stream, until its first content. Default 10 min. */
  totalTimeout?: Duration | undefined;
  /** With less time left no attempt is started. Default 0. */
  minAttemptTime?: Duration | undefined;
  /** All waits of a call together. Default: no bound but `totalTimeout`. */
  maxTotalWait?: Duration | null | undefined;
  /** Attempts over all targets. Default: no bound but the targets' own. */
  maxAttemptsTotal?: number | null | undefined;
  /** How the wait grows. */
  backoff?: BackoffFields | undefined;
  /** How the wait is spread. */
  jitter?: JitterFields | undefined;
  /** How a server's own wish is honoured. */
  retryAfter?: RetryAfterFields | undefined;
  /** The kinds that are tried again on the same target. Default: every retriable one. */
  retryOn?: readonly Kind[] | undefined;
  /** The kinds that go to the next target at once. Default: `quota_exhausted`, `billing`, `not_found`. */
  fallbackOn?: readonly Kind[] | undefined;
  /** What differs for one kind. */
  kinds?: { readonly [kind in Kind]?: KindFields | undefined } | undefined;
  /** Your own rules of classification; the first that holds. */
  rules?: readonly RuleFields[] | undefined;
  /** `unsafe`: what may have been executed is never repeated. Default `idempotent`. */
  sideEffects?: "idempotent" | "unsafe" | undefined;
  /** `bounded`, the default: what an inner call has retried is not retried again. `independent`: it is. `refuse`: an inner call is an error. */
  nested?: "bounded" | "independent" | "refuse" | undefined;
  /** A call that failed everywhere goes to a person: its disposition is `human`. Default false. */
  requiresHumanFallback?: boolean | undefined;
  /** For shedding: lower is shed first. Default 5. */
  priority?: number | undefined;
  /** What attempts are aimed at, in order. Default: one, `primary`. */
  targets?: readonly TargetFields[] | undefined;
  /** A circuit breaker for each target's upstream. Default: none. */
  breaker?: BreakerFields | null | undefined;
  /** A retry budget for each target. Default: none. */
  retryBudget?: RetryBudgetFields | null | undefined;
  /** One call's throttling holds back the others. Default: none. */
  cooldown?: CooldownFields | null | undefined;
  /** Under load, less important calls are refused. Default: none. */
  shed?: ShedFields | null | undefined;
  /** A slow attempt is joined by another. Default: never. */
  hedge?: HedgeFields | null | undefined;
  /** How streams are retried and timed. */
  stream?: StreamFields | undefined;
}

/** One event, in the schema that every language shares. */
export interface CallEvent {
  readonly event:
    | "attempt_started"
    | "attempt_failed"
    | "will_retry"
    | "fallback"
    | "waiting"
    | "succeeded"
    | "gave_up";
  readonly trace_id: string;
  readonly scene: string | null;
  readonly prompt_version: string | null;
  readonly at_ms: number;
  readonly attempt: number;
  readonly target: string;
  readonly timeout_ms: number | null;
  readonly kind: Kind | null;
  readonly category: Category | null;
  readonly reason: string | null;
  readonly delay_ms: number | null;
  readonly resume_in_ms: number | null;
  readonly disposition: Disposition | null;
}

/** What a user's `classify` may answer: a kind's name, a failure, or nothing for the built-in answer. */
export type Classified = Kind | Failure | null | undefined;

/** A function that may know more of its arguments than we do, as methods may. */
export type Loosely<F extends (...args: never[]) => unknown> = {
  of(...args: Parameters<F>): ReturnType<F>;
}["of"];

/** Everything that `bind` takes. `undefined` leaves a thing as it is, `null` takes it back. */
export interface CallOptions {
  /** Written into the records. */
  scene?: string | null | undefined;
  promptVersion?: string | null | undefined;
  /** 32 lower-case hexadecimal digits; drawn where it is not given. */
  traceId?: string | null | undefined;
  /** u64: a bigint, a safe integer, or decimal text. */
  seed?: bigint | number | string | null | undefined;
  idempotencyKey?: string | null | undefined;
  /** What an error is. A plain function, as the next two: a promise is no answer. */
  classify?: ((error: unknown) => Classified) | null | undefined;
  /** Whether it is tried again; cannot revive a cancellation or a deadline. */
  retryIf?: ((error: unknown, failure: Failure) => boolean | undefined) | null | undefined;
  /** How long to wait after the nth attempt on a target; capped, not jittered. */
  backoff?: ((failure: Failure, n: number) => Duration | null | undefined) | null | undefined;
  /** The function for a target of the policy, by its id. */
  targets?: { readonly [id: string]: (attempt: Attempt) => unknown } | null | undefined;
  /** What the call asks for, as `attempt.request` shows it; the first argument of a wrapped function. */
  request?: unknown;
  /**
   * Looks at an answer. It throws, or answers `false`, a kind or a `Failure`, where the answer is none; anything else is
   * fine. What it throws is classified; what says nothing of itself is `invalid_output`. It may be async.
   */
  check?: Loosely<(value: unknown) => unknown> | null | undefined;
  /** Adapts the request to an attempt's target: answers another one, or nothing. It may be async. */
  prepare?: Loosely<(request: unknown, target: string) => unknown> | null | undefined;
  /**
   * For each kind of failure that a changed request may mend: answers another request, which stays for the rest of the
   * call, or nothing. Each kind buys one attempt, at once and beside `maxAttempts`. It may be async.
   */
  repair?:
    | { readonly [kind in Kind]?: Loosely<(request: unknown, failure: Failure) => unknown> | undefined }
    | null
    | undefined;
  guards?: Guards | null | undefined;
  run?: Run | null | undefined;
  /** Gets each record as a line of JSON: a function, or a stream that is written to. */
  sink?: ((line: string) => unknown) | { write(text: string): unknown } | null | undefined;
  onEvent?: ((event: CallEvent) => unknown) | null | undefined;
  /** Ends the call at once, with its own reason as the error. */
  signal?: AbortSignal | null | undefined;
  /** `"wrapped"` throws `RetryExhausted`, whose cause is the caller's own error. */
  onGiveUp?: "original" | "wrapped" | null | undefined;
  /** Sets of data that records show as they are: ids, cards, phones, serials, keys, tokens, emails. */
  unmask?: readonly string[] | null | undefined;
}

/** The raw facts of one failure, as far as they are known. */
export interface EvidenceFields {
  status?: number | undefined;
  headers?: Iterable<readonly [string, string]> | { readonly [name: string]: string } | undefined;
  body?: unknown;
  message?: string | undefined;
  errorTypes?: readonly string[] | undefined;
  osCode?: string | undefined;
  providerCode?: string | undefined;
  providerType?: string | undefined;
  inStream?: boolean | undefined;
  inCheck?: boolean | undefined;
  cancelled?: boolean | undefined;
  innerTrace?: string | undefined;
  wallNowMs?: number | undefined;
}

/** What a million tokens of a model cost. What is read from a cache, or kept in one, costs as `input` unless it says. */
export interface Price {
  input: number;
  output: number;
  cachedInput?: number | undefined;
  cacheWrite?: number | undefined;
  /** `"USD"` where it is left out. */
  currency?: string | undefined;
}

/** Prices by the name of a model: the one that is asked for, or else the one that the answer has. */
export interface Prices {
  readonly [model: string]: Price;
}
