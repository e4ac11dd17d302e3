/** `Policy`: what is configured, and every way to run a function under it. */
import { Attempt, type AttemptFunction, currentAttempt, type Facts, type How, OK } from "./attempt.js";
import { clock } from "./clock.js";
import type { EnginePolicy } from "./engine.js";
import { ConfigError } from "./errors.js";
import { fieldsToJson, toJson } from "./fields.js";
import { Guards, type Run } from "./guards.js";
import { Handle } from "./handle.js";
import { ask, engine, engineFault } from "./load.js";
import { perform, resume } from "./loop.js";
import { isPlain, isSignal, merged, type Options } from "./options.js";
import { judged } from "./outcome.js";
import type { Result } from "./result.js";
import { arrive } from "./timers.js";
import type { CallOptions, PolicyFields, PresetName } from "./types.js";

/** A policy with the options of its calls. Made by `bind`. */
export class Bound {
  readonly policy: Policy;
  /** @internal */
  readonly _options: Options;
  /** @internal */
  readonly _signal: AbortSignal | undefined;
  /** @internal */
  readonly _run: Run | undefined = undefined;
  private _plain: boolean | undefined = undefined;

  /** @internal */
  constructor(policy: Policy | undefined, options: Options) {
    this.policy = policy ?? (this as unknown as Policy);
    this._options = options;
    this._signal = options.signal;
  }

  /** The guards that calls ask: the bound ones, or the policy's own. */
  get guards(): Guards {
    return this._options.guards ?? this.policy._guards();
  }

  /** The same policy with more options. Throws `ConfigError` for an unknown option or a bad value. */
  bind(options: CallOptions): Bound {
    return this._onlySignal(options) ?? new Bound(this.policy, merged(this.policy, this._options, options));
  }

  /** Nothing of a call has to be known before an attempt fails. */
  private _isPlain(): boolean {
    this._plain ??= isPlain(this._options) && this.policy._loads() && !this.policy._known()._guarded;
    return this._plain;
  }

  /** A signal alone is what changes from call to call, and tells nothing else about them. */
  private _onlySignal(options: CallOptions): Bound | undefined {
    for (const name in options) if (name !== "signal") return undefined;
    const { signal } = options;
    if (!isSignal(signal)) return undefined;
    const bound = new Bound(this.policy, { ...this._options, signal });
    bound._plain = this._isPlain();
    return bound;
  }

  /** Calls the function until it succeeds or the policy gives up, and then throws what it threw. */
  call<T>(fn: AttemptFunction<T>): Promise<Awaited<T>> {
    try {
      refuseOther(fn);
      // On the happy path the first attempt is made with one object and a place in the list of deadlines; whatever
      // else a call needs is made when it fails.
      const early = this._isPlain() && !clock.sleep && !this._signal?.aborted && !currentAttempt();
      return (
        early ? new Attempt(this.policy._known(), this, fn)._starts(arrive())._start() : perform(this, fn)
      ) as Promise<Awaited<T>>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** The function under this policy. All arguments are its own; `currentAttempt()` tells it of its attempt. */
  wrap<This, Args extends unknown[], T>(
    fn: (this: This, ...args: Args) => T,
  ): (this: This, ...args: Args) => Promise<Awaited<T>> {
    refuseOther(fn);
    const bound = this;
    return function (...args) {
      return bound.call(() => fn.apply(this, args));
    };
  }

  /** As `call`, answered with a `Result`; does not throw what the function throws. */
  async execute<T>(fn: AttemptFunction<T>): Promise<Result<Awaited<T>>> {
    return this.start(fn).result;
  }

  /** Starts the call and answers a handle on it, which can be awaited. */
  start<T>(fn: AttemptFunction<T>): Handle<Awaited<T>> {
    refuseOther(fn);
    return new Handle(this, fn);
  }

  /** Whether this policy would try again after such an error, attempts and time permitting. */
  isRetriable(error: unknown): boolean {
    const failure = judged(this, error);
    return this.policy._native.retries(failure.kind) && !failure.retryForbidden;
  }

  /** @internal How the first attempt of the happy path ended. */
  _ended(attempt: Attempt, how: How, value: unknown): unknown {
    return how === OK ? value : resume(this, attempt, how, value);
  }
}

function refuseOther(fn: unknown): void {
  if (typeof fn !== "function") throw new ConfigError("fn", String(fn), "a function");
}

/** A policy's first attempt, and what else its calls ask it for. */
interface Known extends Facts {
  readonly _guarded: boolean;
  readonly _nested: string;
}

/** How a policy is made other than from fields. */
class From {
  constructor(readonly _make: () => EnginePolicy) {}
}

/**
 * Validated, immutable configuration: how often, how long and after what a call is tried again.
 *
 * A duration is a number of milliseconds or text with a unit (`"300ms"`, `"1.5s"`). An empty policy makes 3 attempts
 * within 10 minutes, waits 250 to 500 ms and then twice that, honours a retry-after of up to 60 s, and retries every
 * retriable kind. Throws `ConfigError`, which names the field, the value and what is allowed.
 */
export class Policy extends Bound {
  private _made: EnginePolicy | undefined = undefined;
  private _own: Guards | undefined = undefined;
  private _facts: Known | undefined = undefined;
  private readonly _make: () => EnginePolicy;

  constructor(fields: PolicyFields = {}) {
    super(undefined, {});
    if (fields instanceof From) {
      this._make = fields._make;
    } else {
      const json = fieldsToJson(fields);
      this._make = () => new (engine().Policy)(json);
    }
    this._loads();
  }

  /** A ready-made policy. */
  static preset(name: PresetName): Policy {
    return from(() => engine().Policy.preset(`${name}`));
  }

  /** From the JSON form, as text or parsed; there every duration has a unit. */
  static fromJSON(json: string | object): Policy {
    const text = typeof json === "string" ? json : toJson(json);
    return from(() => engine().Policy.fromJson(text));
  }

  /** A chain from skill manifests: the skill, and the one that its `fallback_skill_id` names; no further. */
  static forSkill(id: string, manifests: object): Policy {
    const text = toJson(manifests);
    return from(() => engine().Policy.forSkill(`${id}`, text));
  }

  /** The JSON form, which every language reads. */
  toJSON(): Record<string, unknown> {
    return JSON.parse(this._native.toJson());
  }

  /** This policy with other values for some fields. What a nested field leaves out stays as it is here. */
  with(fields: PolicyFields): Policy {
    const json = fieldsToJson(fields);
    return from(() => new (engine().Policy)(json, this._native));
  }

  /** The ids of the targets, in order. */
  get targets(): string[] {
    return JSON.parse(this._native.targets());
  }

  /** @internal The engine's policy; throws where there is no engine. */
  get _native(): EnginePolicy {
    this._made ??= ask(this._make);
    return this._made;
  }

  /** @internal What does not change from call to call, asked for once. */
  _known(): Known {
    if (this._facts) return this._facts;
    const { _native: native, targets } = this;
    this._facts = {
      _number: 1,
      _target: targets[0] as string,
      _timeoutNs: native.firstTimeoutNs(),
      _connectNs: native.connectTimeoutNs() ?? undefined,
      _isLast: native.maxAttemptsOfFirst() === 1 && targets.length === 1,
      _guarded: native.guarded(),
      _nested: native.nested(),
    };
    return this._facts;
  }

  /** @internal Whether there is an engine to decide. Without one a policy cannot be checked either. */
  _loads(): boolean {
    try {
      return !!this._native;
    } catch (error) {
      if (engineFault()) return false;
      throw error;
    }
  }

  /** @internal */
  _guards(): Guards {
    this._own ??= new Guards();
    return this._own;
  }
}

const from = (make: () => EnginePolicy): Policy => new Policy(new From(make) as PolicyFields);
