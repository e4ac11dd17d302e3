/**
 * A call whose attempts answer streams. It may be tried again until its first content is there; from then on each item
 * goes from the source to the consumer when the consumer asks for it.
 */
import { type Attempt, type AttemptFunction, type Facts, type How, OK } from "./attempt.js";
import { clock } from "./clock.js";
import type { Action } from "./failure.js";
import { StreamError } from "./frames.js";
import { alone, drive } from "./loop.js";
import type { Bound } from "./policy.js";
import { StreamAttempt } from "./pull.js";
import type { Result } from "./result.js";
import { Session } from "./session.js";
import { type Source, sourceOf } from "./source.js";
import type { Trace } from "./trace.js";
import { usageOf } from "./usage.js";

/** In mode `restart`: what the consumer has had so far is void, and the answer begins anew. */
export class Discard {
  constructor(
    /** How many items to discard: all since the beginning, or since the last `Discard`. */
    readonly count: number,
  ) {}
}

let held: FinalizationRegistry<Feed<unknown>> | undefined;

/** A stream that nobody holds any more ends its call, for which what waits for its consumer would wait for ever. */
export function endWith<T>(stream: object, feed: Feed<T>): void {
  held ??= new FinalizationRegistry((left) => left._stop("its consumer is gone"));
  held.register(stream, feed as Feed<unknown>, feed);
}

/** What a feed needs to know of its policy's stream. Durations in nanoseconds. */
export interface Mode {
  readonly _mode: "before_first_item" | "buffered" | "restart" | "resume";
  readonly _firstNs: number | undefined;
  readonly _idleNs: number | undefined;
  readonly _silenceNs: number | undefined;
}

/** The call, between its attempts and its consumer. */
export class Feed<T> {
  /** Items that were delivered, where somebody may want them again. */
  readonly _kept: T[] = [];
  /** Delivered since the beginning, or since the last discard. */
  _delivered = 0;
  /** It was told of its end. */
  _ended: { _error?: unknown; _failed: boolean } | undefined;
  _trace: Trace | undefined;
  /** Told of the trace once there is one. */
  _onTrace: ((trace: Trace) => void) | undefined;
  /** What the consumer's own client throws for an error of ours. */
  _theirs: ((error: unknown) => unknown) | undefined;
  /** Settled once the first content is there, or the call has ended. */
  readonly _opened: Promise<void>;
  private _queue: T[] = [];
  /** What settles the consumer's question; nothing where there is none. */
  private _resolve: ((result: IteratorResult<T>) => void) | undefined;
  private _reject!: (error: unknown) => void;
  /** The answer to the last question. */
  private _answer: Promise<unknown> | undefined;
  private _begun = false;
  /** The attempt that the consumer is fed from. */
  private _live: StreamAttempt<T> | undefined;
  private _bare: Source<T> | undefined;
  private _session: FeedSession<T> | undefined;
  private _open!: () => void;

  constructor(
    private readonly _owner: Bound,
    private readonly _fn: AttemptFunction<unknown>,
    readonly _mode: Mode,
    /** Of bytes, which need no reading: they are counted, and may be none at all. */
    readonly _bytes = false,
  ) {
    this._opened = new Promise((resolve) => {
      this._open = resolve;
    });
  }

  // --- what the consumer asks ---

  /** Begins the call, if it has not. */
  _begin(): void {
    if (this._begun || this._ended) return;
    this._begun = true;
    if (!this._owner.policy._loads()) {
      alone(this._owner, this._fn).then(
        (answer) => this._undriven(answer),
        (error) => this._end(error, true),
      );
      return;
    }
    try {
      const session = new FeedSession(this, this._owner, this._fn);
      this._session = session;
      drive(session, session._begin()).then(
        (action) => this._over(session._settled(action)),
        (fault) => this._end(fault, true),
      );
    } catch (error) {
      this._end(error, true);
    }
  }
  /** The next item. Who asks before the last question is answered gets the one after it. */
  _next(): Promise<IteratorResult<T>> {
    const answer = this._resolve
      ? (this._answer as Promise<unknown>).then(this._question, this._question)
      : this._question();
    this._answer = answer;
    return answer;
  }

  /** The consumer wants no more. */
  _stop(why: string): void {
    if (this._ended) return;
    const { _live: live } = this;
    this._queue = [];
    this._end(undefined, false);
    this._bare?._close(why);
    // Who has had the finish frame has had the whole answer.
    if (!live?._isWhole()) this._session?._cancel(why);
  }

  // --- what attempts say ---

  /** The first content of an attempt is there. */
  _firstItem(attempt: StreamAttempt<T>): void {
    this._session?._firstItem(attempt);
  }

  /** It is the one that is delivered. */
  _commit(attempt: StreamAttempt<T>, items: T[]): void {
    this._live = attempt;
    this._flush(items);
  }

  /** An item of the live attempt, which the consumer has asked for. */
  _give(result: IteratorResult<T>): void {
    const resolve = this._resolve as (result: IteratorResult<T>) => void;
    this._resolve = undefined;
    this._count(result.value);
    resolve(result);
  }

  /** The attempt has failed: nothing comes from it any more. */
  _leave(attempt: StreamAttempt<T>): void {
    if (this._live === attempt) this._live = undefined;
  }

  _discard(count: number): void {
    this._kept.length = this._delivered = 0;
    this._flush([new Discard(count) as T]);
  }

  /** Items that are there, to be delivered as they are asked for. */
  _flush(items: T[]): void {
    this._queue.push(...items);
    this._open();
    if (this._resolve && this._queue.length > 0) this._serve();
  }

  /** What the whole answer has to pass. */
  get _check(): Bound["_options"]["check"] {
    return this._bytes ? undefined : this._owner._options.check;
  }

  /** What an answer used, as far as its items tell. */
  _usage(answer: unknown): Record<string, unknown> | undefined {
    const { _meter: meter } = this._owner._options;
    return meter ? meter.usage(answer) : usageOf(answer);
  }

  // --- inside ---

  // Asked for each item: what it needs is made once.
  private readonly _question = (): Promise<IteratorResult<T>> => {
    const answer = new Promise<IteratorResult<T>>(this._asks);
    if (this._queue.length > 0 || this._ended) this._serve();
    else if (this._live) this._live._pull();
    else if (this._bare) this._pass(this._bare);
    else this._begin();
    return answer;
  };

  private readonly _asks = (resolve: (result: IteratorResult<T>) => void, reject: (error: unknown) => void): void => {
    this._resolve = resolve;
    this._reject = reject;
  };

  private _serve(): void {
    const { _resolve: resolve, _reject: reject, _ended: ended } = this;
    if (!resolve) return;
    this._resolve = undefined;
    if (this._queue.length > 0) {
      const value = this._queue.shift() as T;
      if (!(value instanceof Discard)) this._count(value);
      resolve({ done: false, value });
    } else if (ended?._failed) {
      // Thrown once, as a generator does.
      this._ended = { _failed: false };
      reject(this._theirs ? this._theirs(ended._error) : ended._error);
    } else {
      resolve({ done: true, value: undefined });
    }
  }

  private _count(item: T): void {
    this._delivered++;
    if (this._bytes) this._session?._hear();
    else this._kept.push(item);
  }

  private _over(result: Result<unknown>): void {
    const { ok, error, trace, attempts, failure, stopReason = "", resumeIn } = result;
    this._trace = trace;
    this._onTrace?.(trace);
    if (!this._bytes) trace.delivered = this._kept;
    if (error instanceof StreamError) Object.assign(error, { trace, attempts, failure, stopReason, resumeIn });
    this._end(error, !ok);
  }

  private _end(error: unknown, failed: boolean): void {
    this._ended ??= { _error: error, _failed: failed };
    held?.unregister(this);
    this._live = undefined;
    this._open();
    if (this._resolve) this._serve();
  }

  /** Without an engine there is one attempt, and nothing to decide. */
  private _undriven(answer: unknown): void {
    try {
      this._bare = sourceOf<T>(answer);
    } catch (error) {
      this._end(error, true);
      return;
    }
    this._open();
    if (this._resolve) this._pass(this._bare);
  }

  private async _pass(source: Source<T>): Promise<void> {
    try {
      const result = await source.next();
      if (result.done) this._end(undefined, false);
      else this._give(result);
    } catch (error) {
      this._end(error, true);
    }
  }
}

/** The call of a feed: its attempts feed, and their outcomes say what was delivered. */
class FeedSession<T> extends Session {
  constructor(
    private readonly _feed: Feed<T>,
    owner: Bound,
    fn: AttemptFunction<unknown>,
  ) {
    super(owner, fn, true);
  }

  /** Of attempts beside each other the first with an item is the one. */
  _firstItem(attempt: StreamAttempt<T>): void {
    this._call.firstItem(clock.now(), attempt.number);
    this._singleOut(attempt as Attempt);
  }

  /** Bytes have come: an outer attempt that streams what they say may not hear of them otherwise. */
  _hear(): void {
    (this._outer as Partial<StreamAttempt> | undefined)?._hear?.();
  }

  /** How the call ended; nobody asks the machine after this. */
  _settled(action: Action): Result<unknown> {
    const result = this._result(action);
    this._free();
    return result;
  }

  /** What a stream answers is looked at when it is whole. */
  protected override get _check(): undefined {
    return undefined;
  }

  protected override _new(facts: Facts, fn: AttemptFunction<unknown>): Attempt {
    return new StreamAttempt(facts, this, fn, this._signal, this._feed as Feed<unknown>);
  }

  protected override _outcome(attempt: Attempt, how: How, value: unknown): string {
    return (attempt as StreamAttempt<T>)._told(super._outcome(attempt, how, value));
  }

  override _ended(attempt: Attempt, how: How, value: unknown): Action {
    const streamed = attempt as StreamAttempt<T>;
    if (how !== OK) streamed._letGo(value);
    const action = super._ended(attempt, how, value);
    if (action.kind === "done") this._feed._flush(streamed._held);
    else if (action.discard) this._feed._discard(action.discard);
    return action;
  }
}
