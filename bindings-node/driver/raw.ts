/** The raw machine, for drivers of one's own: outcomes and time in, actions out. */
import type { EngineCall } from "./engine.js";
import { evidenceJson, factsOf, headersOf } from "./evidence.js";
import { type Action, actionOf, classified, type Failure } from "./failure.js";
import { toJson, toWire } from "./fields.js";
import type { Guards, Run } from "./guards.js";
import { ask, engine } from "./load.js";
import type { Policy } from "./policy.js";
import type { Receipt } from "./trace.js";
import type { EvidenceFields, Kind } from "./types.js";

/** What an attempt came to: one of the first three, and beside it what is known. Durations are text with a unit. */
export interface Outcome {
  success?: Record<string, never>;
  failure?: { kind: string; [field: string]: unknown };
  evidence?: EvidenceFields;
  delivered?: number;
  delivering?: string;
  retryIf?: boolean;
  backoff?: string;
  usage?: { inputTokens?: number; outputTokens?: number; cost?: number; currency?: string };
}

/** What a raw call shares, and what names it. */
export interface RawOptions {
  ids?: { traceId: string; idempotencyKey?: string; scene?: string; promptVersion?: string } | undefined;
  guards?: Guards | undefined;
  run?: Run | undefined;
  /** An outer bound, in nanoseconds on the same clock. */
  endsBy?: number | undefined;
  /** The kinds of failure after which you can change the request: the first of each is answered with a `repair`. */
  repairs?: readonly Kind[] | undefined;
}

/** What a restored call shares. */
export interface RestoreOptions extends RawOptions {
  /** Whether the time it was suspended counts; it does by default. */
  countSuspended?: boolean | undefined;
}

/** One call as a state machine. Reads no clock: `now` is in nanoseconds since any one moment. */
export class Call {
  private readonly _native: EngineCall;

  constructor(policy: Policy, seed: bigint | number | string, { ids, guards, run, endsBy, repairs }: RawOptions = {}) {
    guards?._leaves();
    const how = toJson({ ids: toWire(ids ?? null), endsBy, recorded: true, repairs });
    this._native = ask(() => new (engine().Call)(policy._native, `${seed}`, how, guards?._native, run?._native));
  }

  /** The call of a snapshot, and its next action. Throws `SnapshotError`. */
  static restore(
    snapshot: string,
    now: number,
    wallNowMs: number,
    { countSuspended, guards, run, endsBy, repairs }: RestoreOptions = {},
  ): [Call, Action] {
    guards?._leaves();
    const how = toJson({ countSuspended, endsBy, repairs });
    const _native = ask(() => engine().Call.restore(snapshot, now, wallNowMs, how, guards?._native, run?._native));
    return [Object.assign(Object.create(Call.prototype), { _native }), actionOf(_native.restored())];
  }

  /** Begins an attempt: the first, or the one after a wait or fallback. */
  begin(now: number): Action {
    return actionOf(ask(() => this._native.begin(now)));
  }

  /** Takes the outcome of attempt `number`. */
  onOutcome(now: number, number: number, outcome: Outcome): Action {
    return actionOf(ask(() => this._native.onOutcome(now, number, toJson(toWire(outcome)))));
  }

  /** Cancels the call, in any state. */
  cancel(now: number): Action {
    return actionOf(ask(() => this._native.cancel(now)));
  }

  /**
   * An attempt (the latest unless said) has its first item. `pending`: it goes on, alone from now on. `ignored`: it is
   * not in flight, because another one was first; drop it.
   */
  firstItem(now: number, number = this.attempts): Action {
    return actionOf(this._native.firstItem(now, number));
  }

  /**
   * The latest attempt's `hedgeAfter` has passed: an `attempt` that joins it, or `pending` where none may. The rest are
   * yours to cancel once one has won; their outcomes are `ignored`.
   */
  hedge(now: number): Action {
    return actionOf(this._native.hedge(now));
  }

  /** The call as JSON. */
  snapshot(now: number, wallNowMs: number): string {
    return this._native.snapshot(now, wallNowMs);
  }

  /** `ready`, `in_flight`, `waiting` or `ended`. */
  get state(): string {
    return this._native.state();
  }

  /** Attempts issued so far. */
  get attempts(): number {
    return this._native.attempts();
  }

  /** The receipts so far, and the `call_ended` record once it has ended. */
  get records(): Receipt[] {
    return JSON.parse(this._native.lines()).map((line: string) => JSON.parse(line));
  }
}

/**
 * What a failure is: of a thrown value, and of raw evidence beside or in place of it. An object with `status`,
 * `headers`, `body` and `message` is read as a thrown one.
 */
export function classify(error: unknown, { policy, ...evidence }: EvidenceFields & { policy?: Policy } = {}): Failure {
  const facts = { ...factsOf(error), ...(toWire(evidence) as object) };
  if (evidence.headers) facts.headers = headersOf(evidence.headers);
  return classified(evidenceJson(facts), policy?._native);
}
