/** One attempt: what its function sees, and how its end reaches whoever made it, once. */
import type { Past } from "./again.js";
import { clock } from "./clock.js";
import { AttemptTimeout } from "./errors.js";
import type { Calm, Run } from "./guards.js";
import { Ids } from "./ids.js";
import { unwatch, watch } from "./signals.js";
import { join, leave } from "./timers.js";
import type { Trace } from "./trace.js";

/** What is known of an attempt before it begins. For a first attempt it is the same in every call of a policy. */
export interface Facts {
  readonly _number: number;
  readonly _target: string;
  readonly _timeoutNs: number;
  readonly _connectNs: number | undefined;
  readonly _isLast: boolean;
}

/** How an attempt ended. */
export type How = typeof OK | typeof FAILED | typeof TIMED_OUT | typeof CANCELLED;
export const OK = 0;
export const FAILED = 1;
export const TIMED_OUT = 2;
export const CANCELLED = 3;

/** What makes attempts, and is told how each ended. */
export interface Maker {
  /** The run that the attempts belong to. */
  readonly _run: Run | undefined;
  /** What the call asks for. */
  readonly _request: unknown;
  /** Answers what the attempt's promise is resolved with. */
  _ended(attempt: Attempt, how: How, value: unknown): unknown;
}

/** What a policy runs. */
export type AttemptFunction<T> = (attempt: Attempt) => T;

/** One attempt, as its function sees it. Durations are in milliseconds. */
export class Attempt {
  /** @internal */
  _place = -1;
  /** @internal When its time is up; in a burst, not known at once. */
  _due: number | undefined;
  /** @internal What still runs of it is no part of it. */
  _over = false;
  private _resolve: ((answer: unknown) => void) | undefined = undefined;
  // What most attempts never have takes no room in them.
  /** @internal The calm in which it began, if its call has guards and did not ask them. */
  declare _calm?: Calm;
  /** @internal The names of its call, if somebody has asked. */
  declare _ids?: Ids;
  /** @internal */
  declare _stop?: () => void;
  /** @internal Why it was abandoned. */
  declare _cutBy?: unknown[];
  /** @internal The attempt before it, of a call without a machine; and what the machine is to be told of this one. */
  declare _past?: Past;
  declare _outcome?: string;
  /** @internal What fails now fails in an answer that had begun. */
  declare _inAnswer?: boolean;
  /** @internal Of a call inside of it that gave up and answered with a status: what its function may throw of its own. */
  declare _gaveUp?: { readonly _status: number; readonly _trace: Trace };
  /** @internal Its request, repaired and prepared. */
  declare _asks?: unknown;
  /** @internal The answer that `check` looks at. */
  declare _answered?: [unknown];
  declare private _controller?: AbortController;
  declare private _watches?: boolean;

  /** @internal */
  constructor(
    /** @internal */
    readonly _facts: Facts,
    private readonly _maker: Maker,
    /** @internal */
    readonly _fn: AttemptFunction<unknown>,
    /** @internal The caller's. */
    readonly _signal: AbortSignal | undefined,
    /** When it begins, where that is known. */
    now: number | undefined,
  ) {
    this._due = now === undefined ? undefined : now + _facts._timeoutNs;
  }

  /** Its number over the whole call, from 1. */
  get number(): number {
    return this._facts._number;
  }

  /** The id of the target it is aimed at. */
  get target(): string {
    return this._facts._target;
  }

  /** How long it may take: hand it on to the client. */
  get timeout(): number {
    return this._facts._timeoutNs / 1e6;
  }

  /** How long a connection may take to open; never more than `timeout`. */
  get connectTimeout(): number {
    return Math.min(this._facts._connectNs ?? this._facts._timeoutNs, this._facts._timeoutNs) / 1e6;
  }

  /** What is left of its timeout. */
  get timeLeft(): number {
    return Math.max(0, this._ends() - clock.now()) / 1e6;
  }

  /** No attempt can follow it. */
  get isLast(): boolean {
    return this._facts._isLast;
  }

  /** 32 hexadecimal digits that name the call in its records. */
  get traceId(): string {
    return this._named()._traceId;
  }

  /** One key for the whole call, for a server that recognises a repeated request. */
  get idempotencyKey(): string {
    return this._named()._key;
  }

  /** The run it belongs to. */
  get run(): Run | undefined {
    return this._maker._run;
  }

  /** What the call asks for: its option `request`, repaired, and prepared for this attempt. */
  get request(): unknown {
    return this._asks ?? this._maker._request;
  }

  /**
   * Aborts when the attempt is abandoned: at its timeout, because its call was cancelled, or because another attempt
   * beside it was first. Never on success.
   */
  get signal(): AbortSignal {
    if (!this._controller) {
      this._controller = new AbortController();
      (this._controller.signal as Marked)[OF] = this;
      if (this._cutBy) this._controller.abort(this._cutBy[0]);
    }
    return this._controller.signal;
  }

  /** @internal */
  _named(): Ids {
    this._ids ??= new Ids();
    return this._ids;
  }

  /** @internal When its time is up. */
  _ends(): number {
    this._due ??= clock.now() + this._facts._timeoutNs;
    return this._due;
  }

  /** @internal When it began. */
  _began(): number {
    return this._ends() - this._facts._timeoutNs;
  }

  /** @internal Runs the function; the promise tells what `ended` makes of how it went. Late answers are dropped. */
  _start(): Promise<unknown> {
    let value: unknown;
    try {
      // A promise as it is; a thenable, whatever it does, made one.
      value = Promise.resolve(during(this, this._fn));
    } catch (error) {
      this._over = true;
      return Promise.resolve(this._maker._ended(this, FAILED, error));
    }
    const ends = new Promise((resolve) => {
      this._resolve = resolve;
    });
    (value as Promise<unknown>).then(
      (answer) => {
        if (leave(this)) this._end(OK, answer);
      },
      (error) => {
        if (leave(this)) this._end(FAILED, error);
      },
    );
    join(this);
    return ends;
  }

  /** @internal Abandons it, because its call is cancelled. */
  _cancel(reason: unknown): void {
    if (leave(this)) this._end(CANCELLED, reason);
  }

  /** @internal Another one was first: it is abandoned, and nobody is told how it ends. */
  _drop(reason: unknown): void {
    this._resolve = undefined;
    this._cancel(reason);
  }

  /** @internal Its time is up. */
  _fire(): void {
    const seconds = Number((this.timeout / 1e3).toPrecision(3));
    const { number } = this;
    this._end(TIMED_OUT, new AttemptTimeout(`attempt ${number} took longer than ${seconds} s`, { attempts: number }));
  }

  /** @internal Is due at a moment, and listens to the caller's signal. */
  _settle(): void {
    this._ends();
    const { _signal: signal } = this;
    if (!signal) return;
    this._watches = true;
    watch(signal, this);
    if (signal.aborted) this._aborted();
  }

  /** @internal The caller's signal aborts. */
  _aborted(): void {
    this._cancel(this._signal?.reason);
  }

  /** @internal It has left the list, and ends. */
  _end(how: How, value: unknown): void {
    this._over = true;
    if (this._watches) unwatch(this._signal as AbortSignal, this);
    try {
      this._resolve?.(this._maker._ended(this, how, value));
    } catch (fault) {
      this._resolve?.(Promise.reject(fault));
    }
    if (how >= TIMED_OUT) {
      this._cutBy = [value];
      this._controller?.abort(value);
    }
  }
}

/** What makes an attempt visible further than the first `await`: an `AsyncLocalStorage` does. */
export interface Context {
  getStore(): Attempt | undefined;
  run<R>(attempt: Attempt, fn: (attempt: Attempt) => R, argument: Attempt): R;
}

/** Where a signal keeps the attempt that it is of: every call with a signal looks there. */
const OF = Symbol("attempt");
type Marked = AbortSignal & { [OF]?: Attempt };

/** The attempt under way that this signal is of. */
export function attemptOf(signal: AbortSignal | undefined): Attempt | undefined {
  const attempt = signal && (signal as Marked)[OF];
  return attempt?._over ? undefined : attempt;
}

let inside: Attempt | undefined;
let around: Context | undefined;

/** Makes attempts visible through this from now on, or with `undefined` only until the first `await` of a function. */
export function setContext(context: Context | undefined): void {
  around = context;
}

/** Calls the function, which sees that it is part of the attempt. */
export function during<T>(attempt: Attempt, fn: AttemptFunction<T>): T {
  const outer = inside;
  inside = attempt;
  try {
    return around ? around.run(attempt, fn, attempt) : fn(attempt);
  } finally {
    inside = outer;
  }
}

/**
 * The attempt under way here, or `undefined` outside of one. Without a context it is seen by what the function calls
 * before its first `await`: functions get their attempt as an argument, which is always right.
 */
export function currentAttempt(): Attempt | undefined {
  const attempt = attemptAround();
  return attempt?._over ? undefined : attempt;
}

/** The same, or an attempt that was abandoned meanwhile: what it still begins is cancelled. */
export function attemptAround(): Attempt | undefined {
  return inside || around ? surrounding() : undefined;
}

function surrounding(): Attempt | undefined {
  const attempt = inside ?? around?.getStore();
  return attempt?._over && !attempt._cutBy ? undefined : attempt;
}
