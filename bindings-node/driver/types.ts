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
  kind?: "constant" | "linear" | "exponential" | "decorrelated" | "schedule" | undefined;
  base?: Duration | undefined;
  factor?: number | undefined;
  max?: Duration | undefined;
  delays?: readonly Duration[] | undefined;
}

/** How the wait is spread. */
export interface JitterFields {
  kind?: "none" | "full" | "lower_bounded" | "proportional" | "additive" | undefined;
  ratio?: number | undefined;
}

/** How a server's own wish is honoured: the longest that is waited for, and the share added at random. */
export interface RetryAfterFields {
  max?: Duration | undefined;
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
  id: string;
  account?: string | null | undefined;
  upstream?: string | null | undefined;
  maxAttempts?: number | undefined;
  attemptTimeout?: Duration | null | undefined;
}

/** When a breaker opens, and for how long: `consecutiveFailures`, or `ratio` with `window` and `minCalls`. */
export interface BreakerFields {
  consecutiveFailures?: number | undefined;
  window?: Duration | undefined;
  minCalls?: number | undefined;
  ratio?: number | undefined;
  openFor?: Duration | undefined;
  openForMax?: Duration | undefined;
  probeLease?: Duration | undefined;
}

/** How many retries a target may have: a bucket (`capacity` and costs), or a `ratio` with `minPerSecond`, `window`. */
export interface RetryBudgetFields {
  capacity?: number | undefined;
  retryCost?: number | undefined;
  throttleCost?: number | undefined;
  refund?: number | undefined;
  ratio?: number | undefined;
  minPerSecond?: number | undefined;
  window?: Duration | undefined;
}

/** How long one call's throttling holds back the others, and how long an account is benched. */
export interface CooldownFields {
  max?: Duration | undefined;
  bench?: Duration | undefined;
}

/** The load above which calls below a priority are refused. */
export interface ShedFields {
  queueDepth?: number | null | undefined;
  costRatio?: number | null | undefined;
  belowPriority?: number | undefined;
}

/** When a slow attempt is joined by another beside it, and by how many (1). Streams go on without; `wrapFetch` takes none. */
export interface HedgeFields {
  after: Duration;
  max?: number | undefined;
}

/** How streams are retried and timed. */
export interface StreamFields {
  mode?: "before_first_item" | "buffered" | "restart" | "resume" | undefined;
  firstItemTimeout?: Duration | null | undefined;
  idleTimeout?: Duration | null | undefined;
  silenceTimeout?: Duration | null | undefined;
}

/** Everything a policy takes. What is left out stays as it is in the empty policy, or in the one it is based on. */
export interface PolicyFields {
  maxAttempts?: number | undefined;
  connectTimeout?: Duration | null | undefined;
  attemptTimeout?: Duration | null | undefined;
  totalTimeout?: Duration | undefined;
  minAttemptTime?: Duration | undefined;
  maxTotalWait?: Duration | null | undefined;
  maxAttemptsTotal?: number | null | undefined;
  backoff?: BackoffFields | undefined;
  jitter?: JitterFields | undefined;
  retryAfter?: RetryAfterFields | undefined;
  retryOn?: readonly Kind[] | undefined;
  fallbackOn?: readonly Kind[] | undefined;
  kinds?: { readonly [kind in Kind]?: KindFields | undefined } | undefined;
  rules?: readonly RuleFields[] | undefined;
  sideEffects?: "idempotent" | "unsafe" | undefined;
  nested?: "bounded" | "independent" | "refuse" | undefined;
  requiresHumanFallback?: boolean | undefined;
  priority?: number | undefined;
  targets?: readonly TargetFields[] | undefined;
  breaker?: BreakerFields | null | undefined;
  retryBudget?: RetryBudgetFields | null | undefined;
  cooldown?: CooldownFields | null | undefined;
  shed?: ShedFields | null | undefined;
  hedge?: HedgeFields | null | undefined;
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
