/** `retryStream`: a function that answers a stream, under a policy. */
import { ConfigError, MisuseError } from "./errors.js";
import { type Discard, endWith, Feed, type Mode } from "./feed.js";
import { engine } from "./load.js";
import type { Bound, Policy } from "./policy.js";
import type { StreamAttempt } from "./pull.js";
import { policyOf } from "./retry.js";
import type { Streamable } from "./source.js";
import type { Trace } from "./trace.js";
import type { CallOptions, PolicyFields } from "./types.js";

/** Fields that make a stream begin anew when it breaks. */
export type Restarting = PolicyFields & { readonly stream: { readonly mode: "restart" } };

/**
 * What a stream's policy runs: it answers a stream of items, or a promise of one. Who looks at what was delivered says of
 * what type it is: `(attempt: StreamAttempt<Chunk>) => ...`.
 */
export type StreamFunction<T, D = unknown> = (attempt: StreamAttempt<D>) => Streamable<T> | PromiseLike<Streamable<T>>;

/**
 * The items of a stream that is tried again until its first content is there. `for await` it, once.
 *
 * The call begins with the first item that is asked for, or with `open()`. Leaving the loop early closes the source and
 * ends the call as cancelled. What breaks later throws the source's own error, with a trace (`traceOf`) that says how
 * many items were delivered; `stream.mode` of the policy says what else may be done about it.
 */
export class RetryStream<T> implements AsyncIterableIterator<T, undefined> {
  private _taken = false;

  /** @internal */
  constructor(
    /** @internal */
    readonly _feed: Feed<T>,
  ) {
    endWith(this, _feed);
  }

  /** Begins now, and waits for the first content; throws what the call throws if there is none. */
  async open(): Promise<this> {
    this._feed._begin();
    await this._feed._opened;
    const { _ended: ended } = this._feed;
    if (ended?._failed) throw ended._error;
    return this;
  }

  /** The next item. */
  next(): Promise<IteratorResult<T, undefined>> {
    return this._feed._next();
  }

  /** Ends the call: closes the source, and aborts the attempt's signal. */
  return(): Promise<IteratorResult<T, undefined>> {
    this.cancel();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Ends the call, as `return`. */
  cancel(reason = "its consumer stopped"): void {
    this._feed._stop(reason);
  }

  [Symbol.asyncIterator](): this {
    this._take();
    return this;
  }

  /** The items as a `ReadableStream`, each read from the source when it is asked for. */
  toReadableStream(): ReadableStream<T> {
    return this._readable(() => {});
  }

  /** @internal The same; told of the error that it ends with. */
  _readable(broken: (error: unknown) => void): ReadableStream<T> {
    this._take();
    return new ReadableStream<T>(
      {
        pull: async (controller) => {
          try {
            const { done, value } = await this.next();
            if (done) controller.close();
            else controller.enqueue(value);
          } catch (error) {
            broken(error);
            throw error;
          }
        },
        cancel: () => this.cancel(),
      },
      { highWaterMark: 0 },
    );
  }

  /** The records of the call, once it has ended. */
  get trace(): Trace | undefined {
    return this._feed._trace;
  }

  private _take(): void {
    if (this._taken) throw new MisuseError("a stream is consumed once: ask for a new one, or keep its items");
    this._taken = true;
  }
}

/**
 * Calls a function that answers a stream (an async iterable, an SDK's stream, a `ReadableStream`, a `Response`), and
 * tries it again where it fails before its first content. In mode `restart` a `Discard` may be among the items.
 *
 * ```ts
 * const stream = retryStream((attempt) => client.chat.completions.create({ ..., stream: true }, { signal: attempt.signal }));
 * for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");
 * ```
 */
export function retryStream<T>(
  fn: StreamFunction<T>,
  policy: Restarting,
  options?: CallOptions,
): RetryStream<T | Discard>;
export function retryStream<T>(
  fn: StreamFunction<T>,
  policy?: Bound | PolicyFields,
  options?: CallOptions,
): RetryStream<T>;
export function retryStream<T>(
  fn: StreamFunction<T, T>,
  policy: Restarting,
  options?: CallOptions,
): RetryStream<T | Discard>;
export function retryStream<T>(
  fn: StreamFunction<T, T>,
  policy?: Bound | PolicyFields,
  options?: CallOptions,
): RetryStream<T>;
export function retryStream<T>(
  fn: StreamFunction<T, T>,
  policy?: Bound | PolicyFields,
  options?: CallOptions,
): RetryStream<T> {
  if (typeof fn !== "function") throw new ConfigError("fn", String(fn), "a function that answers a stream");
  const owner = policyOf(policy);
  return streamOf<T>(options ? owner.bind(options) : owner, fn);
}

/** @internal A stream that has not begun. */
export function streamOf<T>(owner: Bound, fn: StreamFunction<T, T>, bytes = false, whole = false): RetryStream<T> {
  const mode = modeOf(owner.policy);
  return new RetryStream<T>(new Feed<T>(owner, fn as never, whole ? { ...mode, _mode: "buffered" } : mode, bytes));
}

const modes = new WeakMap<Policy, Mode>();

/** How the policy's streams are retried and timed. */
export function modeOf(policy: Policy): Mode {
  let mode = modes.get(policy);
  if (!mode) {
    const said = policy._loads() ? (policy.toJSON().stream as Record<string, string | null>) : {};
    const ns = (text: string | null | undefined): number | undefined =>
      text == null ? undefined : engine().parseDuration(text, 1);
    mode = {
      _mode: (said.mode ?? "before_first_item") as Mode["_mode"],
      _firstNs: ns(said.first_item_timeout),
      _idleNs: ns(said.idle_timeout),
      _silenceNs: ns(said.silence_timeout),
    };
    modes.set(policy, mode);
  }
  return mode;
}
