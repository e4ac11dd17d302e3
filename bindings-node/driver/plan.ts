/** What a wrapped client shares with everything that derives from it. */
import { ConfigError } from "./errors.js";
import { type Bound, varied } from "./policy.js";
import type { Client } from "./sdk.js";
import type { Prices } from "./types.js";

/** What wrapping was told of clients. */
export interface Told {
  /** What wrapping changed, for the records. */
  readonly _changed: string;
  readonly _prices: Prices | undefined;
  /** The header that carries the idempotency key. */
  readonly _header: string | undefined;
  /** The clients of other targets. */
  readonly _clients: { readonly [target: string]: Client };
}

/** One for a client, and one more for what derives from it without retries. */
export class Plan {
  private _quietly: Plan | undefined = undefined;
  private _safely: Bound | undefined = undefined;
  private _warned = false;

  constructor(
    readonly _owner: Bound,
    readonly _told: Told,
  ) {}

  /** The same for who asked not to retry: one attempt in all. */
  get _once(): Plan {
    this._quietly ??= new Plan(varied(this._owner, { maxAttempts: 1, maxAttemptsTotal: 1 }), this._told);
    return this._quietly;
  }

  /** For a request that may be repeated whatever the policy says of side effects. */
  get _safe(): Bound {
    this._safely ??= varied(this._owner, { sideEffects: "idempotent" });
    return this._safely;
  }

  /** Says once that a client sends more of a request than it was told to. */
  _warns(more: number): void {
    if (more === 0 || this._warned) return;
    this._warned = true;
    console.warn(
      `reprieve: a wrapped client (${this._told._changed}) sent ${more} more of a request by itself within one attempt: ` +
        "turn off the retries of its middleware, or they multiply with those of the policy",
    );
  }
}

/** Whether no retries are asked for; any are refused. */
export function refuseRetries(maxRetries: number | undefined): boolean {
  if (!maxRetries) return maxRetries === 0;
  const allowed =
    "0 (one attempt) or nothing: the policy retries. Say it there, as in wrap(client, { maxAttempts: 6 })";
  throw new ConfigError("maxRetries", `${maxRetries} of a wrapped client`, allowed);
}

/** The header that carries the idempotency key, where one is asked for. */
export function headerOf(idempotency: unknown): string | undefined {
  if (idempotency === undefined || idempotency === false) return undefined;
  if (idempotency === true) return "Idempotency-Key";
  if (typeof idempotency === "string" && idempotency) return idempotency;
  throw new ConfigError("idempotency", String(idempotency), "true, false, or the name of a header");
}
