/** What `execute` answers: the value or the error, and how the call came to it. */
import type { Failure } from "./failure.js";
import type { Trace } from "./trace.js";
import type { Disposition, StopReason } from "./types.js";

/** How a call ended. `value` is meant when `ok`, else `error`. Durations are in milliseconds. */
export class Result<T> {
  declare readonly ok: boolean;
  declare readonly value: T | undefined;
  declare readonly error: unknown;
  declare readonly failure: Failure | undefined;
  declare readonly stopReason: StopReason | undefined;
  declare readonly disposition: Disposition | undefined;
  declare readonly resumeIn: number | undefined;
  declare readonly trace: Trace;
  readonly attempts: number;
  readonly latency: number;
  /** Only what the attempts reported, as `cost`. */
  readonly usage: { readonly inputTokens: number | undefined; readonly outputTokens: number | undefined };
  readonly cost: number | undefined;

  /** @internal */
  constructor(facts: Partial<Result<T>> & { trace: Trace }) {
    Object.assign(this, facts);
    const ended = (facts.trace.ended ?? {}) as Record<string, number | null>;
    this.attempts = ended.attempts ?? 0;
    this.latency = ended.elapsed_ms ?? 0;
    this.usage = { inputTokens: ended.input_tokens ?? undefined, outputTokens: ended.output_tokens ?? undefined };
    this.cost = ended.cost ?? undefined;
  }

  /** The value, or this when the call failed. */
  valueOr<D>(fallback: D): T | D {
    return this.ok ? (this.value as T) : fallback;
  }

  /** The value; throws the error of a call that failed. */
  unpack(): T {
    if (this.ok) return this.value as T;
    throw this.error;
  }
}
