/** State that calls share: guards and runs. */
import { clock } from "./clock.js";
import type { EngineGuards, EngineRun } from "./engine.js";
import { fieldsToJson } from "./fields.js";
import { ask, engine } from "./load.js";
import type { Policy } from "./policy.js";
import type { Duration } from "./types.js";

/**
 * A time in which nothing happens to a set of guards, and for which policies it is calm: their calls need not ask
 * before their first attempt, nor tell of its success.
 */
export interface Calm {
  _lasts: boolean;
  /** What the engine answered. */
  readonly _of: WeakMap<Policy, number>;
}

/** Breakers, retry budgets, cooldowns and reported load. A policy makes its own; the option `guards` shares one. */
export class Guards {
  /** @internal */
  _native: EngineGuards = ask(() => new (engine().Guards)());
  private _calm: Calm | undefined = undefined;
  private _elsewhere = false;

  /** The set that `share` gave this token of, in any worker thread of this process. With the native engine only. */
  static from(token: string): Guards {
    const guards = new Guards();
    guards._native = ask(() => engine().Guards.from(token));
    guards._leaves();
    return guards;
  }

  /** A token of this set for other worker threads, good as long as any of them holds the set. Native engine only. */
  share(): string {
    const token = ask(() => this._native.share());
    this._leaves();
    return token;
  }

  /** Reports load: jobs waiting, and cost as a share of what may be spent. What is left out stays as it was. */
  report({ queueDepth, costRatio }: { queueDepth?: number | undefined; costRatio?: number | undefined }): void {
    this._stir();
    ask(() => this._native.report(queueDepth, costRatio));
  }

  /** What is open, cooling, benched or spent right now, for people. */
  describe(): Record<string, unknown> {
    return JSON.parse(this._native.describe(clock.now()));
  }

  /** `closed`, `open` or `half_open` for a target (default: the first); `undefined` without a breaker. */
  breakerState(policy: Policy, target: string = policy.targets[0] as string): string | undefined {
    return this._native.breakerState(policy._native, target, clock.now()) ?? undefined;
  }

  /** Forgets everything. */
  reset(): void {
    this._stir();
    this._native.reset();
  }

  /** @internal The time of calm that it is for this policy, if it is. */
  _calmFor(policy: Policy): Calm | undefined {
    if (this._elsewhere) return undefined;
    if (this._calm?._of.has(policy)) return this._calm;
    const answer = this._native.calm(policy._native, clock.now());
    if (answer === undefined) return undefined;
    this._calm ??= { _lasts: true, _of: new WeakMap() };
    this._calm._of.set(policy, answer);
    return this._calm;
  }

  /** @internal Something happens to the set. */
  _stir(): void {
    if (this._calm) this._calm._lasts = false;
    this._calm = undefined;
  }

  /** @internal What happens to the set is not seen here from now on. */
  _leaves(): void {
    this._stir();
    this._elsewhere = true;
  }
}

/** What bounds a run: all its calls together. `deadline` is from now. */
export interface RunConfig {
  attempts?: number | undefined;
  tokens?: number | undefined;
  cost?: number | undefined;
  deadline?: Duration | undefined;
  /** What each attempt reserves until it says what it used, and stays charged with when it never says. */
  estimateTokens?: number | undefined;
  estimateCost?: number | undefined;
}

/** An agent's run: a budget, a deadline and a gate that its calls share. */
export class Run {
  /** @internal */
  readonly _native: EngineRun;
  /** @internal Wakes the calls that are under way. */
  readonly _wakers = new Set<() => void>();

  constructor({ deadline, ...config }: RunConfig = {}) {
    this._native = ask(() => {
      const fields = deadline === undefined ? {} : { deadline: clock.now() + engine().parseDuration(deadline, 1e6) };
      return new (engine().Run)(fieldsToJson({ ...config, ...fields }));
    });
  }

  /** Refuses every attempt from now on, wakes every wait and abandons attempts under way. */
  cancel(reason = "cancelled"): void {
    this._native.cancel(reason);
    this._wake();
  }

  /** The run has come to an end, such as `SUCCEEDED`: the same as cancelling, under another name. */
  end(state: string): void {
    this._native.end(state);
    this._wake();
  }

  /** What is used, reserved and left. */
  report(): Record<string, unknown> {
    return JSON.parse(this._native.report());
  }

  /** It was cancelled or has ended. */
  get ended(): boolean {
    return this._native.ended();
  }

  private _wake(): void {
    for (const waker of [...this._wakers]) waker();
  }
}
