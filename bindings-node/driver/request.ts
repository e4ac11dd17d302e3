/** One request of a wrapped client: a call, whose attempts the SDK sends and reads. */
import type { Attempt } from "./attempt.js";
import { isOnce, kept, MOST_KEPT } from "./body.js";
import { AttemptTimeout } from "./errors.js";
import type { Feed } from "./feed.js";
import { toJson } from "./fields.js";
import { read, StreamError } from "./frames.js";
import { type Meter, meeting } from "./options.js";
import { type Plan, refuseRetries } from "./plan.js";
import { type Bound, metered } from "./policy.js";
import { pricedUsage } from "./prices.js";
import { get } from "./reading.js";
import {
  type ApiPromise,
  type Client,
  type Fetch,
  isChosen,
  type Parse,
  type Props,
  RESPONSE_PROPS,
  type RequestOptions,
  refreshes,
  sdkError,
  THEN_UNWRAP,
} from "./sdk.js";
import { streamOf } from "./stream.js";
import { attach, attached } from "./trace.js";

/** Sends one attempt through a client. */
type Send = (client: Client, options: RequestOptions) => Promise<Props>;

/** What an attempt came to, and what its body says if it was read. */
class Answer {
  constructor(
    readonly _props: Props,
    readonly _isRead: boolean,
    readonly _value?: unknown,
  ) {}
}

/** Sends the attempts of a stream, and knows the answer of the latest. Apart from its stream, which is not to be held. */
class Latest {
  _answer!: Answer;

  constructor(private readonly _send: (attempt: Attempt) => Promise<Answer>) {}

  readonly _open = async (attempt: Attempt): Promise<AsyncIterable<unknown>> => {
    this._answer = await this._send(attempt);
    return this._answer._value as AsyncIterable<unknown>;
  };
}

/** The SDKs' streams are made of a function that answers an iterator, and what ends it. */
type StreamClass = new (
  iterator: () => AsyncIterator<unknown>,
  controller: AbortController,
  client: unknown,
) => unknown;

/** A request in the options that an SDK is given: a symbol, so that it is copied with them and never sent. */
export const SENT_BY = /* @__PURE__ */ Symbol("reprieve.request");
const OWN = ["then", "catch", "finally", "withResponse"];
/** How much later a client's own timer goes off than that of the attempt, in milliseconds. */
const LATER = 100;
/** No timer takes more milliseconds. */
const LONGEST = 2 ** 31 - 1;

/** Reads nothing. */
const unread: Parse = async () => undefined;
const counted = /* @__PURE__ */ new WeakSet<Fetch>();
/** What bodies were read as within their attempts. Not kept by a request: a stream that nobody holds ends its call. */
const bodies = /* @__PURE__ */ new WeakMap<Props, unknown>();

/** Tells a request what is sent for it. */
export function counting(fetch: Fetch): Fetch {
  if (counted.has(fetch)) return fetch;
  const told: Fetch = (url, init) => {
    (init as { [SENT_BY]?: Request } | undefined)?.[SENT_BY]?._sends(init?.headers);
    return fetch(url, init);
  };
  counted.add(told);
  return told;
}

/** What was made of an answer, with what is hidden in the answer: its request's id, its trace. */
function alike(value: unknown, made: unknown): unknown {
  if (made === value || Object(made) !== made || Object(value) !== value) return made;
  for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
    if (!descriptor.enumerable && !Object.hasOwn(made as object, name)) {
      Object.defineProperty(made, name, descriptor);
    }
  }
  const trace = attached(value);
  if (trace) attach(made, trace);
  return made;
}

/** Whether a model's answer says that it failed, under a status that says success. */
function isFailure(value: unknown): boolean {
  return get(value, "error") != null && read(value) === "error";
}

export class Request implements Meter {
  private _parse = unread;
  private _model: unknown;
  /** The body is for the caller to read. */
  private _raw = false;
  /** So it is where it is a stream. */
  private _rawStream = false;
  private _attempted: Attempt | undefined = undefined;
  private _sent = 0;
  private _retries = 0;
  /** A body that is sent once, and what it held. */
  private _once: unknown;
  private _kept: unknown;

  constructor(
    private readonly _client: Client,
    private readonly _plan: Plan,
    /** The attempt that this request is made in, if one is seen. */
    private readonly _outer: Attempt | undefined,
  ) {}

  /** The options, with this in them. */
  async _marked(options: unknown): Promise<object> {
    return { ...((await options) as object), [SENT_BY]: this };
  }

  /** Has the body read within the attempts, unless the promise is asked for the response as it comes. */
  _reads(promise: ApiPromise): ApiPromise {
    this._parse = promise.parseResponse;
    promise.parseResponse = async (client, props) =>
      bodies.has(props) ? bodies.get(props) : this._parse(client, props);
    return this._watches(promise);
  }

  /** Runs the call. */
  async _run(options: RequestOptions, send: Send): Promise<Props> {
    this._model = get(options.body, "model");
    this._raw ||= this._rawStream && options.stream === true;
    const plan = refuseRetries(options.maxRetries) ? this._plan._once : this._plan;
    const owner = options.method?.toLowerCase() === "get" ? plan._safe : plan._owner;
    const outer = this._outer?._over ? undefined : this._outer?.signal;
    const bound = metered(owner, this, options.signal ?? outer, options.body);
    const attempted = (attempt: Attempt) => this._attempt(options, send, attempt);
    try {
      const streams = options.stream && !this._isOpen(options);
      const answer = await (streams ? this._streams(bound, attempted) : this._whole(bound, attempted));
      if (answer._isRead) bodies.set(answer._props, answer._value);
      return answer._props;
    } catch (error) {
      throw this._theirs(error, bound._signal);
    }
  }

  /** A request goes out with these headers. */
  _sends(headers: unknown): void {
    this._sent += 1;
    if (!(headers instanceof Headers)) return;
    this._retries = Math.max(this._retries, Number(headers.get("x-stainless-retry-count")) || 0);
    const { _header: header } = this._plan._told;
    if (header && this._attempted && !headers.has(header)) headers.set(header, this._attempted.idempotencyKey);
  }

  // --- what its session asks ---

  get changed(): string {
    return this._plan._told._changed;
  }

  seen(answer: unknown): unknown {
    return answer instanceof Answer && answer._isRead ? answer._value : answer;
  }

  usage(answer: unknown): Record<string, unknown> | undefined {
    return pricedUsage(answer instanceof Answer ? answer._value : answer, this._plan._told._prices, this._model);
  }

  hidden({ number, traceId }: Attempt): string | undefined {
    const retries = this._more();
    return retries > 0 ? toJson({ record: "hidden_retries", trace_id: traceId, attempt: number, retries }) : undefined;
  }

  // --- inside ---

  private async _attempt(options: RequestOptions, send: Send, attempt: Attempt): Promise<Answer> {
    this._attempted = attempt;
    this._sent = this._retries = 0;
    const client = this._plan._told._clients[attempt.target] ?? this._client;
    const given = attempt.request ?? options.body;
    this._model = get(given, "model");
    const body = isOnce(given) ? await this._wholeBody(given, options, attempt) : given;
    const asked = { ...options, body, ...this._limits(options, client, attempt) };
    const sent = await send(client, asked)
      .catch((error) => {
        if (!refreshes(client, error)) throw error;
        this._sent -= 1;
        return send(client, asked);
      })
      .finally(() => this._plan._warns(this._more()));
    // A page's next request begins with the options of this one, as the caller gave them.
    const _props = { ...sent, options };
    if (this._raw) return new Answer(_props, false);
    const value = await this._parse(this._client, _props);
    if (this._model !== undefined && isFailure(value)) {
      const { status, headers } = _props.response;
      throw client.makeStatusError(status, value, undefined, headers);
    }
    return new Answer(_props, true, value);
  }

  /** The body as each attempt can send it: what is read as it is sent is kept, within the first of them. */
  private _wholeBody(body: unknown, { method, path }: RequestOptions, { signal }: Attempt): unknown {
    if (this._once !== body) {
      this._once = body;
      this._kept = kept(body, MOST_KEPT, `${method?.toUpperCase()} ${path}`, { signal });
    }
    return this._kept;
  }

  /** An answer that is read whole; `traceOf` knows the trace of what the caller gets. */
  private async _whole(bound: Bound, attempted: (attempt: Attempt) => Promise<Answer>): Promise<Answer> {
    const result = await bound.execute(attempted);
    const answer = result.unpack();
    attach(answer._props.response.headers, result.trace);
    attach(answer._value, result.trace);
    return answer;
  }

  /** A stream of the SDK's class whose items come from a call: it is there once its first content is. */
  private async _streams(bound: Bound, attempted: (attempt: Attempt) => Promise<Answer>): Promise<Answer> {
    const latest = new Latest(attempted);
    const items = streamOf<unknown>(bound, latest._open);
    await items.open();
    const { _props, _value } = latest._answer;
    const controller = new AbortController();
    controller.signal.addEventListener("abort", () => items.cancel("its controller was aborted"));
    const { constructor: Stream } = _value as { constructor: StreamClass };
    const stream = new Stream(() => items[Symbol.asyncIterator](), controller, this._client);
    this._tells(items._feed, new WeakRef(stream as object), _props.response, bound._signal);
    // A copy: what is made of these must not be held by what made them.
    return new Answer({ ..._props }, true, stream);
  }

  /** Has a stream end as the SDK's do, once no attempt will follow. */
  private _tells(
    feed: Feed<unknown>,
    stream: WeakRef<object>,
    { headers }: Response,
    signal: AbortSignal | undefined,
  ): void {
    feed._theirs = (error) => this._theirs(error, signal);
    feed._onTrace = (trace) => {
      attach(headers, trace);
      attach(stream.deref(), trace);
    };
    // Some versions read by a function that holds their promise, and with it the stream.
    this._parse = unread;
  }

  /** Whether the body is for the caller to read, as it comes. */
  private _isOpen(options: RequestOptions): boolean {
    return this._raw || options.__binaryResponse === true;
  }

  /** What was sent beside the request of the attempt. */
  private _more(): number {
    return Math.max(0, this._sent - 1, this._retries);
  }

  private _limits(options: RequestOptions, client: Client, attempt: Attempt): RequestOptions {
    const chosen = [options.timeout, client.timeout].find((ms) => isChosen(client, ms)) ?? LONGEST;
    return {
      maxRetries: 0,
      // The attempt's hears of the caller's, but not any more while the caller reads a body by itself.
      signal: this._isOpen(options) ? meeting(attempt.signal, options.signal ?? undefined) : attempt.signal,
      timeout: Math.min(chosen, Math.ceil(attempt.timeout) + LATER, LONGEST),
      fetchOptions: { ...options.fetchOptions, [SENT_BY]: this },
    };
  }

  /** What users of the SDK catch, where the call ended with something of ours or of a signal. */
  private _theirs(error: unknown, signal: AbortSignal | undefined): unknown {
    const [name, message] = this._named(error, signal);
    const theirs = name && sdkError(this._client, name, message);
    if (!theirs) return error;
    theirs.cause = error;
    const trace = attached(error);
    if (trace) attach(theirs, trace);
    return theirs;
  }

  /** Class and message of the SDK's error for one of ours; none for its own. */
  private _named(error: unknown, signal: AbortSignal | undefined): [name?: string, message?: string] {
    if (error instanceof AttemptTimeout) return ["APIConnectionTimeoutError", `Request timed out: ${error.message}.`];
    if (error instanceof StreamError) return ["APIError", error.message];
    return signal?.aborted && error === signal.reason ? ["APIUserAbortError"] : [];
  }

  private _watches(promise: ApiPromise): ApiPromise {
    // Some versions have their promises read by themselves; the general way asks how to read.
    for (const name of OWN) Reflect.deleteProperty(promise, name);
    const { asResponse, [THEN_UNWRAP]: thenUnwrap, [RESPONSE_PROPS]: responseProps } = promise;
    promise.asResponse = () => {
      if (!promise.parsedPromise) this._raw = true;
      return asResponse.call(promise);
    };
    if (responseProps) {
      promise[RESPONSE_PROPS] = () => {
        this._rawStream = true;
        return responseProps.call(promise);
      };
    }
    promise[THEN_UNWRAP] = (transform) => {
      const made = thenUnwrap.call(promise, transform);
      made.parseResponse = async (client, props) => {
        const value = await promise.parseResponse(client, props);
        return alike(value, transform(value, props));
      };
      return this._watches(made);
    };
    return promise;
  }
}
