/** `wrapFetch`: a `fetch` whose requests are tried again. */
import { type Attempt, attemptAround, attemptOf } from "./attempt.js";
import { alike, drop, forBuffers, isOnce, kept, MOST_KEPT, textOf, withBody } from "./body.js";
import { ConfigError } from "./errors.js";
import { Events } from "./events.js";
import { StreamError } from "./frames.js";
import { Bound } from "./policy.js";
import type { StreamAttempt } from "./pull.js";
import { get } from "./reading.js";
import { boundOf } from "./retry.js";
import { modeOf, type RetryStream, streamOf } from "./stream.js";
import { attach, type Trace, traceOf } from "./trace.js";
import type { CallOptions, PolicyFields, PresetName } from "./types.js";

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

type Bytes = ReadableStream<Uint8Array>;
type Fetch = (input: unknown, init?: RequestInit) => Promise<Response>;

/** So long a failed response's body is waited for, and no longer than half of what is left: its status is known. */
const PATIENCE_MS = 5000;
const IDEMPOTENT = ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"];
const NO_BODY = { body: null };
const wrapped = new WeakSet<object>();

/**
 * The same `fetch`, under a policy: a status that says failure is one, and so is a body that breaks. A body that says it
 * is no longer than `maxBody` is read within the attempt, as is any where `stream.mode` is `"buffered"`; of another the
 * first byte is, of a model's stream of events everything before the first content. What breaks later is an error. When the policy gives up, the last response is the answer, as it
 * would be without this, or the last exception is thrown; `traceOf(response)` says how it came to it.
 *
 * Only idempotent methods are repeated, unless `methods` names more, or the request has an `Idempotency-Key`; a request
 * that cannot have been executed always may be.
 *
 * ```ts
 * const client = new OpenAI({ maxRetries: 0, fetch: wrapFetch(fetch, { maxAttempts: 4 }, { methods: ["POST"] }) });
 * ```
 */
export function wrapFetch<F extends AnyFetch = typeof globalThis.fetch>(
  fetch?: F,
  policy?: Bound | PolicyFields | PresetName,
  options: FetchOptions = {},
): F {
  const send = (fetch ?? ((input: never, init: never) => globalThis.fetch(input, init))) as Fetch;
  if (typeof send !== "function") throw new ConfigError("fetch", String(fetch), "a fetch function");
  if (wrapped.has(send))
    throw new ConfigError("fetch", "a fetch that is wrapped already", "the bare one: layers add up");
  const { methods = [], idempotencyHeader, maxBody = MOST_KEPT, ...others } = options;
  if (!(Number.isInteger(maxBody) && maxBody >= 0)) {
    throw new ConfigError("maxBody", String(maxBody), "a whole number of bytes");
  }
  if (!(Array.isArray(methods) && methods.every((name) => typeof name === "string"))) {
    throw new ConfigError("methods", String(methods), 'a list of names: ["POST"]');
  }
  if (
    idempotencyHeader !== undefined &&
    !(typeof idempotencyHeader === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(idempotencyHeader))
  ) {
    throw new ConfigError("idempotencyHeader", `"${idempotencyHeader}"`, "the name of a header");
  }
  const bound = boundOf(policy).bind(others);
  const allowed = [...IDEMPOTENT, ...methods.map((name) => name.toUpperCase())];
  checkForBytes(bound);
  let unsafe: Bound | undefined;

  const made = async (input: unknown, init?: RequestInit): Promise<Response> => {
    const headers = new Headers(init?.headers ?? (get(input, "headers") as Headers | undefined));
    const method = String(init?.method ?? get(input, "method") ?? "GET").toUpperCase();
    noteRetriesAbove(headers);
    const mayRepeat = allowed.includes(method) || !!idempotencyHeader || headers.has("idempotency-key");
    if (!mayRepeat) unsafe ??= unsafely(bound);
    const owner = unsafe && !mayRepeat ? unsafe : bound;
    const signal = (init?.signal ?? get(input, "signal") ?? undefined) as AbortSignal | undefined;
    const request = { _input: input, _init: init, _headers: headers };
    return new Exchange(send, request, method, idempotencyHeader, maxBody)._perform(
      signal ? owner.bind({ signal }) : owner,
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

interface Asked {
  readonly _input: unknown;
  readonly _init: RequestInit | undefined;
  readonly _headers: Headers;
}

/** One request, and what was answered to it. */
class Exchange {
  /** The last response that failed: the caller may want it. */
  private _failed: Response | undefined;
  private _answered: Response | undefined;
  private _attempted: StreamAttempt<Uint8Array> | undefined;
  private _kept: Promise<BodyInit> | undefined;

  constructor(
    private readonly _send: Fetch,
    private readonly _request: Asked,
    private readonly _method: string,
    private readonly _keyHeader: string | undefined,
    private readonly _maxBody: number,
  ) {}

  async _perform(owner: Bound): Promise<Response> {
    const outer = attemptOf(owner._signal) ?? attemptAround();
    const stream = streamOf<Uint8Array>(owner, (attempt) => this._attempt(attempt), true);
    try {
      await stream.open();
    } catch (error) {
      return this._givenUp(error, outer);
    }
    return delivered(this._answered as Response, stream);
  }

  private async _attempt(attempt: StreamAttempt<Uint8Array>): Promise<Pick<Response, "body">> {
    if (this._failed) drop(this._failed);
    this._failed = undefined;
    const { _input: input, _init: given, _headers: headers } = this._request;
    const init: RequestInit = { ...given, signal: attempt.signal };
    const body = given?.body ?? get(input, "body");
    if (isOnce(body)) {
      this._kept ??= this._keep(given?.body ? body : input, body, attempt);
      init.body = await this._kept;
    }
    if (this._keyHeader) {
      const own = new Headers(headers);
      if (!own.has(this._keyHeader)) own.set(this._keyHeader, attempt.idempotencyKey);
      init.headers = own;
    }
    const response = await this._send(body === undefined ? copyOf(input) : input, init);
    if (attempt._over) return response;
    refuseOther(response);
    if (response.status >= 400) {
      const error = new StatusError(response, await textOf(response, Math.min(PATIENCE_MS, attempt.timeLeft / 2)));
      if (!attempt._over) this._failed = response;
      else drop(response);
      throw error;
    }
    this._answered = response;
    this._attempted = attempt;
    if (/^text\/event-stream\b/.test(response.headers.get("content-type") ?? "")) {
      attempt._events = new Events(this._method === "GET");
    }
    const length = response.headers.get("content-length");
    attempt._wholly = length !== null && Number(length) <= this._maxBody;
    // Where bodies are no streams, as in React Native, the caller reads one when there is an answer.
    return response.body ? response : NO_BODY;
  }

  /** What can be sent once, as something that each attempt can send: read within the first one. */
  private _keep(holder: unknown, body: unknown, { signal }: StreamAttempt<Uint8Array>): Promise<BodyInit> {
    const {
      _method: method,
      _request: { _input: input },
    } = this;
    const others = ", raise maxBody, or send it through a fetch that is not wrapped";
    const used = get(holder, "bodyUsed") === true ? holder : body;
    return kept(used, this._maxBody, `${method} ${get(input, "url") ?? input}`, { others, signal });
  }

  /** The response that the call gave up on; else throws what was thrown. */
  private _givenUp(error: unknown, outer: Attempt | undefined): Response {
    const { _failed: failed, _answered: answered } = this;
    if (error instanceof StreamError && answered) {
      // Whoever reads it knows what to make of such an answer.
      const made = withBody(answered, new Response(new Blob(this._attempted?._held as BlobPart[])).body as Bytes);
      keep(made, traceOf(error));
      return made;
    }
    if (!failed) throw error;
    if (!(error instanceof StatusError)) {
      drop(failed);
      throw error;
    }
    const trace = traceOf(error);
    if (trace?.ended?.reason === "unsafe_to_repeat") {
      const note = `${trace.note}; to have a ${this._method} sent again, name it in methods, or send an Idempotency-Key`;
      Object.assign(trace, { note });
    }
    keep(failed, trace);
    if (outer && trace) outer._gaveUp = { _status: failed.status, _trace: trace };
    return alike(failed, failed);
  }
}

/** Keeps a trace for a response and for its headers, which clients' errors and copies of the response have as well. */
function keep(response: Response | undefined, trace: Trace | undefined): void {
  for (const part of [response, response?.headers]) if (trace) attach(part, trace);
}

/**
 * The response as the caller gets it, whose body comes from the call. The call must not hold it, as it ends by its being let
 * go of: so this is a function of its own, and so is the next one, because all that is made in one holds what any of it needs.
 */
function delivered(response: Response, stream: RetryStream<Uint8Array>): Response {
  // A browser's own readers of a body throw an error of theirs.
  const made: Response = response.body
    ? withBody(response, forBuffers(stream._readable((error) => keep(made, traceOf(error)))))
    : alike(response, response);
  if (stream.trace) keep(made, stream.trace);
  stream._feed._onTrace = keeperOf(made);
  return made;
}

/** Keeps the trace for a response, once there is one. */
function keeperOf(response: Response): (trace: Trace) => void {
  const weak = new WeakRef(response);
  const { headers } = response;
  return (trace) => {
    attach(headers, trace);
    keep(weak.deref(), trace);
  };
}

/** A request whose body cannot be seen, as in Firefox, is sent as a copy: the next attempt needs it as well. */
function copyOf(input: unknown): unknown {
  return typeof get(input, "clone") === "function" ? (input as Request).clone() : input;
}

/** Of clients that look like `fetch` some answer otherwise. */
function refuseOther(response: unknown): void {
  const body = get(response, "body");
  if (typeof get(get(response, "headers"), "get") === "function" && (body == null || get(body, "getReader"))) return;
  const allowed = "a fetch that answers a Response, whose body is a ReadableStream: the platform's, or undici's";
  throw new ConfigError("fetch", `one that answers ${get(get(response, "constructor"), "name") ?? response}`, allowed);
}

/** A response takes nothing back, has one address, and one answer. */
function checkForBytes({ policy, _options: options }: Bound): void {
  if (!policy._loads()) return;
  const { _mode: mode } = modeOf(policy);
  if (!["before_first_item", "buffered"].includes(mode)) {
    throw new ConfigError("stream.mode", mode, "before_first_item or buffered here: a response takes nothing back");
  }
  if (policy.toJSON().hedge)
    throw new ConfigError("hedge", "a hedge", "none here: hedge the function that sends requests");
  if (policy.targets.length > 1 && !options.targets) {
    throw new ConfigError("targets", `${policy.targets}`, "one target here: a request goes where its address says");
  }
}

/** The same for requests that must not have an effect twice, with the very same guards. */
function unsafely(bound: Bound): Bound {
  if (!bound.policy._loads()) return bound;
  const guards = bound._guardSet();
  const options = { ...bound._options, ...(guards && { guards }) };
  return new Bound(bound.policy.with({ sideEffects: "unsafe" }), options, bound._signal);
}

const reported = new Set<string>();

/** A client above that retries by itself multiplies with every layer below: somebody has to hear of it, once for each. */
function noteRetriesAbove(headers: Headers): void {
  const count = headers.get("x-stainless-retry-count");
  const client = headers.get("user-agent") ?? "above";
  if (!(Number(count) > 0) || reported.has(client)) return;
  reported.add(client);
  console.warn(
    `reprieve: the client ${client} retries by itself (x-stainless-retry-count: ${count}), and each of its retries is a ` +
      "call with all attempts of its policy: turn that off with maxRetries: 0",
  );
}
