/**
 * One call: the machine, and its attempts. Nothing here decides: outcomes go into the machine, and what it answers goes
 * back to the loop. `records.ts` has what is told of it, `ending.ts` how it ends.
 */
import { catchUp } from "./again.js";
import {
  Attempt,
  type AttemptFunction,
  attemptAround,
  attemptOf,
  CANCELLED,
  during,
  type Facts,
  type How,
  type Maker,
  OK,
  TIMED_OUT,
} from "./attempt.js";
import { Broken, changed, checked, isPromise } from "./changes.js";
import { clock } from "./clock.js";
import { type Ending, endOf } from "./ending.js";
import type { EngineCall } from "./engine.js";
import { CallCancelled, ConfigError } from "./errors.js";
import { type Action, actionOf, Failure } from "./failure.js";
import { toJson } from "./fields.js";
import type { Guards, Run } from "./guards.js";
import { Ids } from "./ids.js";
import { ask, engine } from "./load.js";
import type { Options } from "./options.js";
import { outcomeOf } from "./outcome.js";
import type { Bound } from "./policy.js";
import { race } from "./race.js";
import { isFreed, Records } from "./records.js";
import { Result } from "./result.js";
import { arrive } from "./timers.js";
import type { Trace } from "./trace.js";
import { usageOf } from "./usage.js";
import { type Wait, waitFor } from "./wait.js";

/** The outcome of an attempt that was abandoned. */
const ABANDONED = '{"failure":{"kind":"cancelled"}}';
const SUPERSEDED = "another attempt beside it was first";

/** One call. The loop asks it what to do, does it, and is told what comes next. */
export class Session implements Maker, Ending {
  readonly _call: EngineCall;
  readonly _signal: AbortSignal | undefined;
  readonly _run: Run | undefined;
  protected readonly _outer: Attempt | undefined;
  readonly _records: Records;
  private readonly _guards: Guards | undefined;
  private readonly _ids: Ids;
  private readonly _recorded: boolean;
  private readonly _heard: boolean;
  readonly _wraps: boolean;
  private readonly _waker = (): void => this._wake();
  private _value: unknown;
  /** What the call asks for, repaired. */
  _request: unknown;
  _brokenBy: string | undefined;
  _failed: { _error: unknown; _ours: boolean } | undefined;
  _cancelled: string | undefined;
  /** Several, where one has joined another. */
  private readonly _inFlight = new Set<Attempt>();
  private _pause: Wait | undefined;

  /** `watched`: by a handle, which tells all. `first`: an attempt that was made already, and did not succeed. */
  constructor(
    protected readonly _owner: Bound,
    private readonly _fn: AttemptFunction<unknown>,
    watched: boolean,
    first?: Attempt,
  ) {
    const { _options: options } = _owner;
    const given = first ? first._signal : _owner._signal;
    const around = attemptOf(given) ?? attemptAround();
    const outer = around?._over ? undefined : around;
    this._outer = outer;
    // An outer attempt that is abandoned takes the inner call with it.
    const bounded = around && _owner.policy._known()._nested === "bounded";
    this._signal = given ?? (bounded ? around.signal : undefined);
    this._run = options.run ?? outer?.run;
    this._guards = _owner._guardSet();
    this._recorded = watched || !!options.sink || !!this._run;
    this._heard = watched || !!options.onEvent;
    this._wraps = options.onGiveUp === "wrapped";
    this._request = options.request;
    this._ids = (first?._ids ?? new Ids(options.traceId, options.idempotencyKey))._seeded(options.seed);
    this._call = ask(() => this._made(first));
    this._records = new Records(this._call, this._guards, options, this._heard);
    this._run?._wakers.add(this._waker);
  }

  // --- what the loop asks ---

  /** Begins the next attempt, or ends a call that was cancelled meanwhile. */
  _begin(): Action {
    return this._next("begin");
  }

  /** Makes the attempt, and those that join it while it is slow; answers what to do next. */
  _attempt(action: Action): Promise<Action> {
    return action.hedgeAfterNs === undefined ? this._launch(action) : race(this, action);
  }

  /** The latest attempt is slow: whether another joins it. */
  _hedge(): Action {
    return this._next("hedge");
  }

  private _next(what: "begin" | "hedge"): Action {
    return this._told(this._call[this._isCancelled() ? "cancel" : what](clock.now()));
  }

  /** Makes one attempt; answers what it came to. */
  _launch({ number, target, timeoutNs }: Action): Promise<Action> {
    const facts = {
      _number: number as number,
      _target: target as string,
      _timeoutNs: timeoutNs as number,
      _connectNs: this._owner.policy._known()._connectNs,
      _isLast: this._call.isLast(),
    };
    const fn = this._owner._options.targets?.[facts._target] ?? this._fn;
    const attempt = this._new(facts, this._whole(fn));
    attempt._ids = this._ids;
    this._inFlight.add(attempt);
    return attempt._start() as Promise<Action>;
  }

  /** An attempt has ended: what the loop is to do next. */
  _ended(attempt: Attempt, how: How, value: unknown): Action {
    this._inFlight.delete(attempt);
    const action = this._judged(attempt, how, value);
    if (action.kind !== "pending") this._singleOut(attempt);
    return action;
  }

  private _judged(attempt: Attempt, how: How, value: unknown): Action {
    if (value instanceof Broken) return this._breaks(value, attempt);
    const hidden = this._owner._options._meter?.hidden?.(attempt);
    if (hidden) this._records._add(hidden);
    return this._told(this._call.onOutcome(clock.now(), attempt.number, this._outcome(attempt, how, value)));
  }

  /** Repairs the request, in the time that is left; answers what ends the call where that cannot be done. */
  async _repair(): Promise<Action | undefined> {
    const failure = new Failure(this._call.failure() as string)._of(this._failed?._error, this._value);
    const role = `repair.${failure.kind}`;
    const repair = this._owner._options.repair?.[failure.kind];
    try {
      const made = changed(role, this._request, () => repair?.(this._request, failure));
      if (!isPromise(made)) {
        this._request = made;
        return undefined;
      }
      let over = false;
      const repaired = made.then((request) => {
        if (!over) this._request = request;
      });
      const left = this._records._timeLeft();
      this._pause = waitFor(left, this._signal, () => clock.now() + left);
      await Promise.race([repaired, this._pause._over]).finally(() => {
        over = true;
        this._pause?._end();
        this._pause = undefined;
      });
      // It goes on, and nobody waits for it any more.
      repaired.catch(() => {});
      return undefined;
    } catch (broken) {
      return this._breaks(broken as Broken);
    }
  }

  /** Waits before the next attempt. */
  async _wait(ns: number): Promise<void> {
    if (clock.sleep) return clock.sleep(ns);
    const now = clock.now();
    this._pause = waitFor(ns, this._signal, () => now + this._records._timeLeft());
    await this._pause._over;
    this._pause = undefined;
  }

  // --- what a handle and a run ask ---

  /** Ends a wait; the machine checks whether it was over. Abandons the attempt of a call that is cancelled. */
  _wake(): void {
    if (this._isCancelled())
      for (const attempt of [...this._inFlight]) attempt._cancel(new CallCancelled(this._cancelled));
    this._pause?._end();
  }

  _cancel(why: string): void {
    this._cancelled ??= why;
    this._wake();
  }

  // --- how a call ends ---

  _close(): void {
    this._run?._wakers.delete(this._waker);
  }

  /** The value; throws the error of a call that failed. Nobody asks the machine after this. */
  _finish(action: Action): unknown {
    const failed = action.kind === "done" ? undefined : endOf(action, this);
    this._free();
    if (failed) throw failed.error;
    return this._value;
  }

  _free(): void {
    if (isFreed(this._call)) this._call.free();
  }

  /** The end as a value. */
  _result(action: Action): Result<unknown> {
    return new Result(
      action.kind === "done"
        ? { ok: true, value: this._value, trace: this._trace("") }
        : { ok: false, value: this._value, ...endOf(action, this) },
    );
  }

  _trace(note: string): Trace {
    return this._records._trace(this._ids._traceId, note);
  }

  // --- inside ---

  /** The others in flight are no longer this call's. */
  protected _singleOut(attempt: Attempt): void {
    const others = [...this._inFlight].filter((other) => other !== attempt);
    for (const other of others) {
      this._inFlight.delete(other);
      other._drop(new CallCancelled(SUPERSEDED));
    }
  }

  protected _new(facts: Facts, fn: AttemptFunction<unknown>): Attempt {
    return new Attempt(facts, this, fn, this._signal, arrive());
  }

  /** The function of an attempt: its request is prepared and its answer is checked inside of it. */
  private _whole(fn: AttemptFunction<unknown>): AttemptFunction<unknown> {
    const { prepare } = this._owner._options;
    const check = this._check;
    return (attempt) => {
      const run = (request: unknown): unknown => {
        attempt._asks = request;
        const value = fn(attempt);
        return check ? this._checks(attempt, check, value) : value;
      };
      if (!prepare) return run(this._request);
      const request = changed("prepare", this._request, () => prepare(this._request, attempt.target));
      return isPromise(request) ? request.then((made) => during(attempt, () => run(made))) : run(request);
    };
  }

  /** What an answer has to pass. */
  protected get _check(): Options["check"] {
    return this._owner._options.check;
  }

  private async _checks(attempt: Attempt, check: NonNullable<Options["check"]>, value: unknown): Promise<unknown> {
    const answer = await value;
    const { _meter: meter } = this._owner._options;
    attempt._answered = [meter?.seen ? meter.seen(answer) : answer];
    await checked(check, attempt._answered[0]);
    return answer;
  }

  /** A function of the caller's has thrown that the call cannot go on without: the call ends with that. */
  private _breaks({ _role, _error }: Broken, attempt?: Attempt): Action {
    const before = this._failed?._error;
    if (_error instanceof Error && _error !== before && before !== undefined) {
      try {
        _error.cause ??= before;
      } catch {
        // Frozen.
      }
    }
    this._failed = { _error, _ours: false };
    this._brokenBy = _role;
    const now = clock.now();
    const cancelled = this._call.cancel(now);
    if (!attempt) return this._told(cancelled);
    return this._told(this._call.onOutcome(now, attempt.number, ABANDONED));
  }

  private _made(first: Attempt | undefined): EngineCall {
    const { _options: options, policy } = this._owner;
    const { _outer: outer } = this;
    const { _native: native } = policy;
    const { _nested: nested } = policy._known();
    if (outer && nested === "refuse") throw new ConfigError("nested", nested, "no outer attempt, and there is one");
    const how = toJson({
      ids: {
        trace_id: this._ids._traceId,
        idempotency_key: this._ids._key,
        scene: options.scene,
        prompt_version: options.promptVersion,
        outer_trace_id: outer?.traceId,
        client: options._meter?.changed,
      },
      endsBy: outer && nested === "bounded" ? outer._ends() : undefined,
      recorded: this._recorded || undefined,
      heard: this._heard || undefined,
      unmask: options.unmask,
      repairs: options.repair && Object.keys(options.repair),
    });
    const { Call } = engine();
    const guards = this._guards?._native;
    if (first) {
      const { _past: past } = first;
      const t0 = (past?._first ?? first)._began();
      const call = Call.started(native, this._ids._seed, t0, how, first._calm?._of.get(policy), guards);
      catchUp(call, past);
      return call;
    }
    const most = clock.attempts;
    return new Call(most ? native.capped(most) : native, this._ids._seed, how, guards, this._run?._native);
  }

  private _isCancelled(): boolean {
    if (this._signal?.aborted) this._cancelled ??= "its signal was aborted";
    if (this._run?.ended) this._cancelled ??= "its run has ended";
    return this._cancelled !== undefined;
  }

  protected _outcome(attempt: Attempt, how: How, value: unknown): string {
    if (how === OK) {
      this._value = value;
      const usage = this._recorded && this._used(value);
      return usage ? toJson({ success: {}, usage }) : '{"success":{}}';
    }
    if (this._isCancelled()) this._call.cancel(clock.now());
    if (how === CANCELLED) return ABANDONED;
    const ours = how === TIMED_OUT;
    this._failed = { _error: value, _ours: ours };
    // An answer that was refused is kept, and has used what it used.
    const { _answered: answered } = attempt;
    this._value = answered?.[0];
    const usage = answered && this._used(this._value);
    if (ours) return toJson({ failure: { kind: "timeout", message: (value as Error).message }, usage });
    return attempt._outcome ?? outcomeOf(this._owner, value, attempt, () => this._call.attemptsOnTarget(), usage);
  }

  private _used(value: unknown): Record<string, unknown> | undefined {
    const { _meter: meter } = this._owner._options;
    return meter ? meter.usage(value) : usageOf(value);
  }

  /** The action, once all that came with it is told. */
  private _told(json: string): Action {
    this._guards?._stir();
    this._records._tell();
    return actionOf(json);
  }
}
