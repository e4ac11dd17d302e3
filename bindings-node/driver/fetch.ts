/** `wrapFetch`: a `fetch` whose requests are tried again. */
import { drop, resendable, textOf, withBody } from "./body.js";
import { ConfigError } from "./errors.js";
import { Bound, type Policy } from "./policy.js";
import type { StreamAttempt } from "./pull.js";
import { get } from "./reading.js";
import { policyOf } from "./retry.js";
import { modeOf, streamOf } from "./stream.js";
import { attach, traceOf } from "./trace.js";
import type { CallOptions, PolicyFields } from "./types.js";

/** What `wrapFetch` takes beside the options of a call. */
export interface FetchOptions extends CallOptions {
  /** Methods that may be repeated beside the idempotent ones, such as `["POST"]` for a model's API. */
  methods?: readonly string[] | undefined;
  /** The header that carries the call's idempotency key, the same for all attempts; such a request may be repeated. */
  idempotencyHeader?: string | undefined;
  /** A body that can be sent once is read into memory up to so many bytes. Default 1 MiB; 0 refuses it. */
  maxBody?: number | undefined;
}

/** Any `fetch`: the platform's, undici's, a client's own. */
export type AnyFetch = (input: never, init?: never) => Promise<unknown>;

type Fetch = (input: unknown, init?: RequestInit) => Promise<Response>;

const IDEMPOTENT = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"];
const wrapped = new WeakSet<object>();

/**
 * The same `fetch`, under a policy: a status that says failure is one, and so is a body that breaks before its first
 * byte. When the policy gives up, the last response is the answer, as it would be without this (`traceOf(response)` says
 * how it came to it), or the last exception is thrown. It answers when the first byte of the body is there.
 *
 * Only idempotent methods are repeated, unless `methods`, an `Idempotency-Key` header or the fields
 * `{ sideEffects: "idempotent" }` say otherwise; a request that cannot have been executed always may be.
 *
 * ```ts
 * const client = new OpenAI({ maxRetries: 0, fetch: wrapFetch(fetch, { maxAttempts: 4 }, { methods: ["POST"] }) });
 * ```
 */
export function wrapFetch<F extends AnyFetch = typeof globalThis.fetch>(
  fetch?: F,
  policy?: Bound | PolicyFields,
  options: FetchOptions = {},
): F {
  const send = (fetch ?? ((input: never, init: never) => globalThis.fetch(input, init))) as Fetch;
  if (typeof send !== "function") throw new ConfigError("fetch", String(fetch), "a fetch function");
  if (wrapped.has(send))
    throw new ConfigError("fetch", "a fetch that is wrapped already", "the bare one: layers add up");
  const { methods = [], idempotencyHeader, maxBody = 1 << 20, ...others } = options;
  if (!(Number.isInteger(maxBody) && maxBody >= 0)) {
    throw new ConfigError("maxBody", String(maxBody), "a whole number of bytes");
  }
  const bound = policyOf(policy).bind(others);
  const allowed = [...IDEMPOTENT, ...methods.map((name) => name.toUpperCase())];
  const everything = !(policy instanceof Bound) && policy?.sideEffects === "idempotent";
  const safe = forBytes(bound, false);
  let unsafe: Bound | undefined;

  const made = async (input: unknown, init?: RequestInit): Promise<Response> => {
    const headers = new Headers(init?.headers ?? (get(input, "headers") as Headers | undefined));
    const method = String(init?.method ?? get(input, "method") ?? "GET").toUpperCase();
    noteRetriesAbove(headers);
    const mayRepeat = everything || allowed.includes(method) || !!idempotencyHeader || headers.has("idempotency-key");
    if (!mayRepeat) unsafe ??= forBytes(bound, true);
    const signal = (init?.signal ?? get(input, "signal") ?? undefined) as AbortSignal | undefined;
    const owner = mayRepeat ? safe : (unsafe as Bound);
    const body = await resendable(input, init, maxBody);
    return new Exchange(send, input, body === undefined ? init : { ...init, body: body as BodyInit })._perform(
      signal ? owner.bind({ signal }) : owner,
      idempotencyHeader,
      headers,
    );
  };
  wrapped.add(made);
  return made as unknown as F;
}

/** A response that says failure, as an error that keeps what it says. */
class StatusError extends Error {
  readonly status: number;
  readonly headers: Headers;

  constructor(
    readonly response: Response,
    readonly body: string | undefined,
  ) {
    super(`the server answered ${response.status}`);
    this.name = "StatusError";
    this.status = response.status;
    this.headers = response.headers;
  }
}

/** One request, and what was answered to it. */
class Exchange {
  /** The last response that failed: the caller may want it. */
  private _failed: Response | undefined;
  private _answered: Response | undefined;

  constructor(
    private readonly _send: Fetch,
    private readonly _input: unknown,
    private readonly _init: RequestInit | undefined,
  ) {}

  async _perform(owner: Bound, keyHeader: string | undefined, headers: Headers): Promise<Response> {
    const stream = streamOf<Uint8Array>(owner, (attempt) => this._attempt(attempt, keyHeader, headers), true);
    try {
      await stream.open();
    } catch (error) {
      return this._givenUp(error);
    }
    const response = this._answered as Response;
    if (!response.body) return response;
    // A browser's own readers of a body throw an error of theirs.
    const made: Response = withBody(
      response,
      stream._readable((error) => keep(made, error)),
    );
    return made;
  }

  private async _attempt(
    attempt: StreamAttempt<Uint8Array>,
    keyHeader: string | undefined,
    headers: Headers,
  ): Promise<Response> {
    if (this._failed) drop(this._failed);
    this._failed = undefined;
    const init: RequestInit = { ...this._init, signal: attempt.signal };
    if (keyHeader) {
      const own = new Headers(headers);
      if (!own.has(keyHeader)) own.set(keyHeader, attempt.idempotencyKey);
      init.headers = own;
    }
    const response = await this._send(this._input, init);
    if (attempt._over) return response;
    if (response.status >= 400) {
      const error = new StatusError(response, await textOf(response));
      if (!attempt._over) this._failed = response;
      else drop(response);
      throw error;
    }
    this._answered = response;
    return response;
  }

  /** The response that the call gave up on; else throws what was thrown. */
  private _givenUp(error: unknown): Response {
    const { _failed: failed } = this;
    if (!failed) throw error;
    if (!(error instanceof StatusError)) {
      drop(failed);
      throw error;
    }
    keep(failed, error);
    return failed;
  }
}

/** Keeps the trace of an error for the response. A client's own error keeps the headers: a call around it sees by them. */
function keep(response: Response, error: unknown): void {
  const trace = traceOf(error);
  for (const part of [response, response.headers]) if (trace) attach(part, trace);
}

/** The policy as bytes need it: they cannot be taken back; and with `unsafe`, nothing is repeated that was executed. */
function forBytes(bound: Bound, unsafe: boolean): Bound {
  const { policy } = bound;
  if (!policy._loads()) return bound;
  const fields: PolicyFields = {};
  if (!["before_first_item", "buffered"].includes(modeOf(policy)._mode)) fields.stream = { mode: "before_first_item" };
  if (unsafe) {
    fields.sideEffects = "unsafe";
    if (policy.toJSON().hedge) Object.assign(fields, { hedge: null });
  }
  if (Object.keys(fields).length === 0) return bound;
  const guards = bound._guardSet();
  return new Bound(policy.with(fields) as Policy, { ...bound._options, ...(guards && { guards }) }, bound._signal);
}

let warned = false;

/** A client above that retries by itself multiplies with every layer below: somebody has to hear of it, once. */
function noteRetriesAbove(headers: Headers): void {
  if (warned || !(Number(headers.get("x-stainless-retry-count")) > 0)) return;
  warned = true;
  console.warn("reprieve: the client above this fetch retries by itself; give it maxRetries: 0");
}
