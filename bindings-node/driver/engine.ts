/**
 * What an engine offers the driver: the core's types as they are, one line each. The native addon and the wasm module
 * both export exactly this, and the compiler checks each against it.
 *
 * Text goes in and out as JSON (the core's wire format), moments and durations as numbers of nanoseconds since the
 * driver's epoch, seeds as decimal text. What an engine throws is an `Error` whose message is JSON:
 * `{"error": "config", "field": ..., "value": ..., "allowed": ...}`, or `{"error": "misuse" | "snapshot" | "wire",
 * "message": ...}`. Nothing here decides.
 */
export interface Engine {
  readonly Policy: PolicyClass;
  readonly Call: CallClass;
  readonly Guards: GuardsClass;
  readonly Run: { new (config: string): EngineRun };
  /** The version of the core. */
  version(): string;
  /** Nanoseconds since an epoch that every thread of the process shares, where guards can be shared between threads. */
  now?(): number;
  /** A failure (JSON) from evidence (JSON), with the rules of a policy where one is given. */
  classify(evidence: string, policy?: EnginePolicy): string;
  /** Every kind: `[[name, category, serviceFault, alert], ...]` as JSON. */
  kinds(): string;
  /** What a stop reason says to whoever is on call. */
  says(reason: string): string;
  /** What one event of a stream (JSON) is: `held`, `content`, `end`, `content_end` or `error`. */
  streamItem(event: string): string;
  /** A stream of such events (JSON) ends with one that says so; without it, it was cut. */
  streamFinishes(event: string): boolean;
  /** A timeline of records (a JSON list of lines), for people. */
  timeline(traceId: string, lines: string): string;
  /** The text, masked; `off` is a JSON list of the sets to leave. */
  mask(text: string, off: string): string;
  /** A duration in nanoseconds: text with a unit, or a number of `unitNs`. */
  parseDuration(value: string | number, unitNs: number): number;
}

export interface PolicyClass {
  /** Fields (JSON) over the empty policy, or over `start`. A bare number is a duration in milliseconds. */
  new (fields: string, start?: EnginePolicy): EnginePolicy;
  /** The JSON form, in which every duration has a unit. */
  fromJson(text: string): EnginePolicy;
  preset(name: string): EnginePolicy;
  /** The names of the presets, as a JSON list. */
  presetNames(): string;
  /** A chain from skill manifests (JSON). */
  forSkill(id: string, manifests: string): EnginePolicy;
}

export interface EnginePolicy {
  toJson(): string;
  /** The ids of the targets, as a JSON list. */
  targets(): string;
  /** A breaker, a retry budget, a cooldown or shedding is set. */
  guarded(): boolean;
  /** Slow attempts are joined by others. */
  hedged(): boolean;
  nested(): string;
  /** How long the first attempt may take. */
  firstTimeoutNs(): number;
  /** No attempt can follow this one, if it and all before it were made on the first target. */
  endsWith(number: number): boolean;
  /**
   * How long the second attempt may take, where it follows at once: the first one, which the driver began by itself at
   * `t0`, has this outcome now. Then no machine is needed until the second one fails, too.
   */
  repeats(seed: string, t0: number, now: number, outcome: string): number | undefined;
  connectTimeoutNs(): number | undefined;
  retries(kind: string): boolean;
  /** No more than `most` attempts on any target. */
  capped(most: number): EnginePolicy;
  /** The wait after an attempt, as the vectors ask for it. */
  delay(kind: string, seed: string, attempt: number, n: number, previousNs?: number, retryAfterNs?: number): number;
}

/** Options of a call, as JSON: `{ids, endsBy, recorded, heard, unmask, repairs}`. */
export interface CallClass {
  new (policy: EnginePolicy, seed: string, options: string, guards?: EngineGuards, run?: EngineRun): EngineCall;
  /** The call whose first attempt the driver began by itself at `t0`, when `calm` was what the guards answered. */
  started(
    policy: EnginePolicy,
    seed: string,
    t0: number,
    options: string,
    calm?: number,
    guards?: EngineGuards,
  ): EngineCall;
  /** The call of a snapshot; its next action is `restored()`. Options: `{countSuspended, endsBy, repairs}`. */
  restore(
    snapshot: string,
    now: number,
    wallNowMs: number,
    options: string,
    guards?: EngineGuards,
    run?: EngineRun,
  ): EngineCall;
}

/** Actions come as JSON: `{"attempt": {...}}`, `{"retry": {...}}`, `"done"`; durations in them are `..._ns`. */
export interface EngineCall {
  begin(now: number): string;
  onOutcome(now: number, attempt: number, outcome: string): string;
  cancel(now: number): string;
  /** `"pending"`, or `"ignored"` where another attempt was first. */
  firstItem(now: number, attempt: number): string;
  /** The latest attempt is slow: another that joins it, or `"pending"`. */
  hedge(now: number): string;
  /** The next action of a restored call. */
  restored(): string;
  snapshot(now: number, wallNowMs: number): string;
  /** Record lines since the last time, as a JSON list of texts; `lines` has every one so far. */
  takeLines(): string;
  lines(): string;
  takeEvents(): string;
  /** The last failure as JSON. */
  failure(): string | undefined;
  state(): string;
  attempts(): number;
  attemptsOnTarget(): number;
  isLast(): boolean;
  traceId(): string;
}

export interface GuardsClass {
  new (): EngineGuards;
  /** The set of which `share` gave this token, in any worker thread of this process. Native only. */
  from(token: string): EngineGuards;
}

export interface EngineGuards {
  /** A token of this set, good for as long as somebody holds the set. Native only: each isolate has its own wasm. */
  share(): string;
  report(queueDepth?: number, costRatio?: number): void;
  reset(): void;
  describe(now: number): string;
  breakerState(policy: EnginePolicy, target: string, now: number): string | undefined;
  /** A number where the policy's calls may begin without asking, and need not tell of a success at the first try. */
  calm(policy: EnginePolicy, now: number): number | undefined;
  takeTransitions(): string;
}

export interface EngineRun {
  cancel(reason: string): void;
  end(state: string): void;
  report(): string;
  ended(): boolean;
}
