/** One attempt of a stream: it pulls from its source, and holds back what is no content until there is some. */
import { Attempt, type AttemptFunction, during, type Facts, type Maker, TIMED_OUT } from "./attempt.js";
import { checked } from "./changes.js";
import { clock } from "./clock.js";
import { AttemptTimeout } from "./errors.js";
import type { Events } from "./events.js";
import type { Feed } from "./feed.js";
import { toJson } from "./fields.js";
import { answerIn, errorOf, faultAtEnd, faultIn, isFinished, isLastEvent, isPing, isTelling, read } from "./frames.js";
import { closeUnopened, type Source, sourceOf } from "./source.js";
import { join, leave, NEVER } from "./timers.js";

const running =
  (fn: AttemptFunction<unknown>): AttemptFunction<unknown> =>
  (attempt) =>
    (attempt as StreamAttempt)._run(fn);

/** One attempt of a stream, as its function sees it. */
export class StreamAttempt<T = unknown> extends Attempt {
  /** @internal Items that are held back; all of them where the answer is delivered whole. */
  _held: T[] = [];
  /** @internal It is delivered whole, whatever the mode says. */
  _wholly = false;
  /** @internal Reads its bytes, where they are a stream of events. */
  _events: Events | undefined;
  private readonly _at = clock.now();
  /** The shorter of the limits for a wait. */
  private readonly _shortest: number;
  private _source: Source<T> | undefined;
  private _whole!: (value: undefined) => void;
  private _broken!: (error: unknown) => void;
  override _inAnswer = false;
  private _hasContent = false;
  /** When its first content was handed over. */
  private _committedAt: number | undefined;
  /** Since when something is waited for; not while the consumer takes its time. */
  private _waitingSince: number | undefined = this._at;
  /** How long data was waited for before the last pings. */
  private _waited = 0;
  private _heardAt = this._at;
  /** What came before the first content, and it. */
  private _opening: readonly T[] = [];
  private _lastBytes: unknown;
  /** How many items the consumer had from attempts before. */
  private readonly _before: number;

  /** @internal */
  constructor(
    facts: Facts,
    maker: Maker,
    fn: AttemptFunction<unknown>,
    signal: AbortSignal | undefined,
    private readonly _feed: Feed<T>,
  ) {
    super(facts, maker, running(fn), signal, undefined);
    const { _idleNs, _silenceNs } = _feed._mode;
    this._shortest = Math.min(_idleNs ?? NEVER, _silenceNs ?? NEVER);
    this._due = this._limit()[0];
    this._before = _feed._kept.length;
  }

  /** How long it may take to its first item: hand it on to the client. */
  override get timeout(): number {
    return Math.min(this._feed._mode._firstNs ?? NEVER, this._facts._timeoutNs) / 1e6;
  }

  /** The items that the consumer has had. In mode `resume`: go on after them. */
  get delivered(): readonly T[] {
    return [...this._feed._kept];
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
    this._inAnswer = this._source._answered;
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
      (Promise.resolve(during(this, this._ask)) as Promise<IteratorResult<T>>).then(this._took, this._failed);
    } catch (error) {
      this._broken(error);
    }
  }

  /** @internal Bytes have come that are no item yet. */
  _hear(): void {
    this._heardAt = clock.now();
  }

  /** @internal Another attempt beside it was first. */
  override _drop(reason: unknown): void {
    super._drop(reason);
    this._letGo(reason);
  }

  /** @internal Nothing of its source is wanted any more. */
  _letGo(reason: unknown): void {
    this._source?._close(reason);
    this._feed._leave(this);
  }

  /** @internal The outcome, with what was delivered. */
  _told(outcome: string): string {
    const usage = this._feed._usage(answerIn([...this._opening.slice(0, 1), ...this._items()]));
    const told = JSON.parse(outcome);
    return toJson({
      ...told,
      // What is held back comes when the outcome has been told.
      delivered: this._feed._delivered + ("success" in told ? this._held.length : 0),
      delivering: this._committedAt === undefined ? 0 : Math.max(0, clock.now() - this._committedAt),
      ...(usage && { usage }),
    });
  }

  /** @internal Its time is up. */
  override _fire(): void {
    const [due, what] = this._limit();
    if (due > clock.now()) {
      // It was armed for an earlier wait.
      this._due = due;
      join(this);
    } else {
      const { number } = this;
      this._end(TIMED_OUT, new AttemptTimeout(`attempt ${number} ${what}`, { attempts: number }));
    }
  }

  /** @internal Nothing more of it is asked for; whether it was whole by then. */
  _isWhole(): boolean {
    const finished = this._feed._bytes ? isLastEvent(this._lastBytes) : isFinished(this._items());
    if (!this._hasContent || finished !== true) return false;
    this._whole(undefined);
    this._source?._close("its consumer has had all of it");
    return true;
  }

  private readonly _ask = (): unknown => (this._source as Source<T>).next();

  private readonly _failed = (error: unknown): void => this._broken(error);

  private readonly _took = (result: IteratorResult<T>): void => {
    if (this._over) return;
    try {
      if (result.done) this._eof();
      else if (!this._isSound(result.value)) return;
      else if (this._committedAt === undefined) this._weigh(result.value);
      else {
        this._lastBytes = result.value;
        this._feed._give(result);
      }
    } catch (error) {
      this._broken(error);
    }
  };

  /** Sees to the item's time, and to signs of trouble; says whether it is fine. */
  private _isSound(item: T): boolean {
    this._inAnswer = true;
    if (isTelling(item)) {
      const fault = faultIn(item, this._opening);
      if (fault) {
        this._broken(fault);
        return false;
      }
      if (isPing(item)) {
        // The wait for data goes on.
        this._heardAt = clock.now();
        this._waited += this._heardAt - (this._waitingSince ?? this._heardAt);
        this._waitingSince = undefined;
        return true;
      }
    }
    this._waited = 0;
    this._waitingSince = undefined;
    return true;
  }

  /** Looks at an item of which nothing was handed over yet: held back until there is content. */
  private _weigh(item: T): void {
    this._held.push(item);
    const said = this._events?.read(item as Uint8Array) ?? (this._hasContent ? "held" : read(item));
    if (said === "error") {
      this._broken(this._events?.error ?? errorOf(item));
      return;
    }
    if (said.startsWith("content") && !this._hasContent) {
      this._hasContent = true;
      this._opening = [...this._held];
      this._feed._firstItem(this);
      if (!this._isBuffered()) {
        this._commit();
        return;
      }
    }
    this._pull();
  }

  private _commit(): void {
    this._committedAt = clock.now();
    // From now on only a wait has an end: a response that nobody reads must not keep the process alive.
    this._rearm();
    const { _held: items } = this;
    this._held = [];
    this._feed._commit(this, items);
  }

  /** The source has no more. */
  private _eof(): void {
    const known = (this._source as Source<T>)._isClient;
    // Where an answer goes on, all of its content may have come before.
    const fault = this._feed._bytes
      ? this._committedAt === undefined && this._events?.end()
      : faultAtEnd(this._items(), this._hasContent || this._before > 0, known);
    const { _check: check } = this._feed;
    if (fault) this._broken(fault);
    else if (check) this._looksAt(check);
    else this._whole(undefined);
  }

  private async _looksAt(check: (items: unknown) => unknown): Promise<void> {
    try {
      // Where an answer goes on after what came before, all of it is looked at.
      this._answered = [[...this._feed._kept, ...(this._committedAt === undefined ? this._held : [])]];
      await checked(check, this._answered[0]);
      this._whole(undefined);
    } catch (error) {
      this._broken(error);
    }
  }

  /** What it has brought. */
  private _items(): readonly unknown[] {
    return this._committedAt === undefined ? this._held : this._feed._kept.slice(this._before);
  }

  private _isBuffered(): boolean {
    return this._wholly || this._feed._mode._mode === "buffered";
  }

  private _wait(): void {
    const now = clock.now();
    this._waitingSince = now;
    // A timer for each item would cost more than the item: one that fires too early looks again.
    if ((this._due as number) <= now + this._shortest - this._waited) return;
    this._rearm();
  }

  private _rearm(): void {
    leave(this);
    this._due = this._limit()[0];
    join(this);
  }

  /** Until when it may go on as it is, and what to say then. */
  private _limit(): [due: number, what: string] {
    const { _firstNs, _idleNs, _silenceNs } = this._feed._mode;
    const since = this._waitingSince ?? NEVER;
    const first = this._hasContent ? undefined : _firstNs;
    const idle = this._hasContent ? _idleNs : undefined;
    const all: [number, string][] = [
      [this._ends(), `took longer than ${seconds(this._facts._timeoutNs)}`],
      [this._at + (first ?? NEVER), `had no first item within ${seconds(first)}`],
      [since - this._waited + (idle ?? NEVER), `was idle for ${seconds(idle)}`],
      [Math.max(since, this._heardAt) + (_silenceNs ?? NEVER), `was silent for ${seconds(_silenceNs)}`],
    ];
    return all.reduce((one, other) => (other[0] < one[0] ? other : one));
  }
}

const seconds = (ns: number | undefined): string => `${Number(((ns ?? 0) / 1e9).toPrecision(3))} s`;
