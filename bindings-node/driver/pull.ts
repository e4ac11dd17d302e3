/** One attempt of a stream: it pulls from its source, and holds back what is no content until there is some. */
import { Attempt, type AttemptFunction, type Facts, type Maker, TIMED_OUT } from "./attempt.js";
import { clock } from "./clock.js";
import { AttemptTimeout } from "./errors.js";
import type { Feed } from "./feed.js";
import { toJson } from "./fields.js";
import { answerIn, errorOf, isCut, isTelling, read, StreamError, startOf } from "./frames.js";
import { closeUnopened, type Source, sourceOf } from "./source.js";
import { join, leave } from "./timers.js";

const NEVER = Number.POSITIVE_INFINITY;

const running =
  (fn: AttemptFunction<unknown>): AttemptFunction<unknown> =>
  (attempt) =>
    (attempt as StreamAttempt)._run(fn);

/** One attempt of a stream, as its function sees it. */
export class StreamAttempt<T = unknown> extends Attempt {
  /** @internal Items that are held back; all of them where the answer is delivered whole. */
  _held: T[] = [];
  private readonly _at = clock.now();
  /** The shorter of the limits for a wait. */
  private readonly _shortest: number;
  private _source: Source<T> | undefined;
  private _whole!: (value: undefined) => void;
  private _broken!: (error: unknown) => void;
  private _frames = 0;
  private _hasContent = false;
  /** When its first content was handed over. */
  private _committedAt: number | undefined;
  /** Since when something is waited for; not while the consumer takes its time. */
  private _waitingSince: number | undefined = this._at;
  private _heardAt = this._at;
  /** The type that began the answer. */
  private _startType: string | undefined;
  // The first item, and the last three, newest first: usage, the end, and what may come after it.
  private _first: unknown;
  private _last: unknown;
  private _last2: unknown;
  private _last3: unknown;

  /** @internal */
  constructor(
    facts: Facts,
    maker: Maker,
    fn: AttemptFunction<unknown>,
    signal: AbortSignal | undefined,
    private readonly _feed: Feed<T>,
  ) {
    super(facts, maker, running(fn), signal);
    const { _idleNs, _silenceNs } = _feed._mode;
    this._shortest = Math.min(_idleNs ?? NEVER, _silenceNs ?? NEVER);
    this._due = this._limit()[0];
  }

  /** The items that the consumer has had. In mode `resume`: go on after them. */
  get delivered(): readonly T[] {
    return [...this._feed._kept];
  }

  /** @internal */
  override get _inAnswer(): boolean {
    return this._frames > 0;
  }

  /** @internal Its own timeout binds until the first content is there. */
  override _ends(): number {
    return this._committedAt === undefined ? this._at + this._facts._timeoutNs : NEVER;
  }

  /** @internal */
  override _began(): number {
    return this._at;
  }

  /** @internal The whole of it: opens what the function answers, and is over with its last item. */
  async _run(fn: AttemptFunction<unknown>): Promise<unknown> {
    const answer = await fn(this);
    if (this._over) return closeUnopened(answer, "its attempt was abandoned");
    this._source = sourceOf(answer);
    return new Promise((resolve, reject) => {
      this._whole = resolve;
      this._broken = reject;
      this._pull();
    });
  }

  /** @internal Asks the source for one item. */
  _pull(): void {
    if (this._shortest < NEVER) this._wait();
    try {
      Promise.resolve((this._source as Source<T>).next()).then(this._took, this._failed);
    } catch (error) {
      this._broken(error);
    }
  }

  /** @internal Bytes have come that are no item yet. */
  _hear(): void {
    this._heardAt = clock.now();
  }

  /** @internal Nothing of its source is wanted any more. */
  _letGo(reason: unknown): void {
    this._source?._close(reason);
    this._feed._leave(this);
  }

  /** @internal The outcome, with what was delivered. */
  _told(outcome: string): string {
    const usage = this._feed._usage(answerIn([this._first, this._last3, this._last2, this._last]));
    const told = JSON.parse(outcome);
    return toJson({
      ...told,
      delivered: "success" in told && this._isBuffered() ? this._held.length : this._feed._delivered,
      delivering: this._committedAt === undefined ? 0 : Math.max(0, clock.now() - this._committedAt),
      ...(usage && { usage }),
    });
  }

  /** @internal Its time is up, or it was armed for an earlier wait than this one. */
  override _fire(): void {
    const [due, what] = this._limit();
    if (due > clock.now()) {
      this._due = due;
      join(this);
    } else if (what) {
      this._end(TIMED_OUT, new AttemptTimeout(`attempt ${this.number}: ${what}`, { attempts: this.number }));
    } else {
      super._fire();
    }
  }

  private readonly _failed = (error: unknown): void => this._broken(error);

  private readonly _took = (result: IteratorResult<T>): void => {
    if (this._over) return;
    this._waitingSince = undefined;
    try {
      if (result.done) this._eof();
      else if (this._committedAt === undefined) this._weigh(result.value);
      else if (this._isSound(result.value)) this._feed._give(result);
    } catch (error) {
      this._broken(error);
    }
  };

  /** Looks at an item of which nothing was handed over yet. */
  private _weigh(item: T): void {
    if (!this._isSound(item)) return;
    const said = this._hasContent ? "held" : read(item);
    if (said === "error") return this._broken(errorOf(item));
    this._startType ??= startOf(item);
    this._held.push(item);
    if (said.startsWith("content")) {
      this._hasContent = true;
      if (!this._isBuffered()) return this._commit();
    }
    this._pull();
  }

  private _commit(): void {
    this._committedAt = clock.now();
    const { _held: items } = this;
    this._held = [];
    this._feed._commit(this, items);
  }

  /** Remembers the item; says whether it is no error and no second start. */
  private _isSound(item: T): boolean {
    this._frames++;
    this._first ??= item;
    this._last3 = this._last2;
    this._last2 = this._last;
    this._last = item;
    if (!isTelling(item, this._startType)) return true;
    if (this._startType && startOf(item) === this._startType) {
      this._broken(new StreamError("the answer started a second time", "second_start", item));
    } else if (read(item) === "error") {
      this._broken(errorOf(item));
    } else {
      return true;
    }
    return false;
  }

  /** The source has no more. */
  private _eof(): void {
    if (this._feed._bytes) return this._whole(undefined);
    if (!this._hasContent) return this._broken(new StreamError("the stream ended without content", "empty_answer"));
    if (isCut([this._last, this._last2, this._last3])) {
      return this._broken(new StreamError("the stream ended without its finish frame", "eof_without_finish"));
    }
    this._whole(undefined);
  }

  private _isBuffered(): boolean {
    return this._feed._mode._mode === "buffered";
  }

  private _wait(): void {
    const now = clock.now();
    this._waitingSince = now;
    // A timer for each item would cost more than the item: one that fires too early looks again.
    if ((this._due as number) <= now + this._shortest) return;
    leave(this);
    this._due = this._limit()[0];
    join(this);
  }

  /** Until when it may go on as it is, and what to say then. */
  private _limit(): [due: number, what: string] {
    const { _firstNs, _idleNs, _silenceNs } = this._feed._mode;
    const since = this._waitingSince ?? NEVER;
    const all: [number, string][] = [
      [this._ends(), ""],
      [this._hasContent ? NEVER : this._at + (_firstNs ?? NEVER), `no first item within ${seconds(_firstNs)}`],
      [this._hasContent ? since + (_idleNs ?? NEVER) : NEVER, `no item for ${seconds(_idleNs)}`],
      [Math.max(since, this._heardAt) + (_silenceNs ?? NEVER), `not a byte for ${seconds(_silenceNs)}`],
    ];
    return all.reduce((one, other) => (other[0] < one[0] ? other : one));
  }
}

const seconds = (ns: number | undefined): string => `${Number(((ns ?? 0) / 1e9).toPrecision(3))} s`;
