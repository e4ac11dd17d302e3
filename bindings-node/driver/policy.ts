/** `Policy`: what is configured, and every way to run a function under it. */
import { again } from "./again.js";
import {
  Attempt,
  type AttemptFunction,
  attemptAround,
  attemptOf,
  FAILED,
  type Facts,
  type How,
  OK,
} from "./attempt.js";
import { clock } from "./clock.js";
import type { EnginePolicy } from "./engine.js";
import { ConfigError } from "./errors.js";
import { fieldsToJson, toJson } from "./fields.js";
import { type Calm, Guards, type Run } from "./guards.js";
import { Handle } from "./handle.js";
import { ask, engine, engineFault } from "./load.js";
import { perform, resume } from "./loop.js";
import { isGenerator, isPlain, type Meter, meeting, merged, type Options, onlySignal } from "./options.js";
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
  /** @internal What its calls ask for. */
  get _request(): unknown {
    return this._options.request;
  }

  private _plain: boolean | undefined = undefined;
  private _asked: Guards | undefined = undefined;
  private _calm: Calm | undefined = undefined;

  /** @internal The options are without the signal. */
  constructor(policy: Policy | undefined, options: Options, signal: AbortSignal | undefined) {
    this.policy = policy ?? (this as unknown as Policy);
    this._options = options;
    this._signal = signal;
  }

  /** The guards that calls ask: the bound ones, or the policy's own. */
  get guards(): Guards {
    return this._options.guards ?? this.policy._guards();
  }

  /** The same policy with more options. Throws `ConfigError` for an unknown option or a bad value. */
  bind(options: CallOptions): Bound {
    const only = onlySignal(options);
    if (only) return new Bound(this.policy, this._options, only);
    const { signal, ...others } = merged(this.policy, this._options, options);
    return new Bound(this.policy, others, options.signal === undefined ? this._signal : signal);
  }

  /** @internal The guards that its calls have to ask, if any. */
  _guardSet(): Guards | undefined {
    return this._options.guards ?? (this.policy._known()._guarded ? this.policy._guards() : undefined);
  }

  /** Nothing of a call has to be known before an attempt fails. */
  private _isPlain(): boolean {
    const plain = isPlain(this._options) && this.policy._loads() && !this.policy._known()._hedged;
    if (plain) this._asked = this._guardSet();
    return plain;
  }

  /** Its guards need not be asked. */
  private _isCalm(): boolean {
    return !this._asked || this._calm?._lasts || this._calms(this._asked);
  }

  private _calms(guards: Guards): boolean {
    this._calm = guards._calmFor(this.policy);
    return this._calm !== undefined;
  }

  /** Calls the function until it succeeds or the policy gives up, and then throws what it threw. */
  call<T>(fn: AttemptFunction<T>): Promise<Awaited<T>> {
    return this._calls(fn, this._signal);
  }

  private _with(signal: AbortSignal | undefined): Bound {
    return signal === this._signal ? this : new Bound(this.policy, this._options, signal);
  }

  /** @internal A call with this signal in place of the bound one. */
  _calls<T>(fn: AttemptFunction<T>, signal: AbortSignal | undefined): Promise<Awaited<T>> {
    try {
      refuseOther(fn);
      // On the happy path the first attempt is made with one object and a place in the list of deadlines; whatever
      // else a call needs is made when it fails. This and all that it asks is short enough to be compiled as one
      // function (V8 takes in 920 bytes of bytecode): what is seldom needed stands in functions of its own.
      this._plain ??= this._isPlain();
      const early =
        this._plain &&
        !clock.sleep &&
        !signal?.aborted &&
        !(signal && attemptOf(signal)) &&
        !attemptAround() &&
        this._isCalm();
      if (!early) return perform(this._with(signal), fn) as Promise<Awaited<T>>;
      const attempt = new Attempt(this.policy._known(), this, fn, signal, arrive());
      if (this._calm) attempt._calm = this._calm;
      return attempt._start() as Promise<Awaited<T>>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * The function under this policy. All arguments are its own; the first one is the request, as `prepare` and `repair`
   * change it. `currentAttempt()` tells it of its attempt.
   */
  wrap<This, Args extends unknown[], T>(
    fn: (this: This, ...args: Args) => T,
  ): (this: This, ...args: Args) => Promise<Awaited<T>> {
    refuseOther(fn);
    const bound = this;
    const { prepare, repair } = this._options;
    if (!prepare && !repair) {
      return function (...args) {
        return bound.call(() => fn.apply(this, args));
      };
    }
    return function (...args) {
      const [request, ...others] = args;
      const asking = new Bound(bound.policy, { ...bound._options, request }, bound._signal);
      return asking.call((attempt) => fn.apply(this, [attempt.request, ...others] as unknown[] as Args));
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
    if (how === OK && (attempt._calm?._lasts ?? true)) return value;
    const second = how === FAILED && !this._asked && !attempt._past ? again(this, attempt, value) : undefined;
    return second ?? resume(this, attempt, how, value);
  }
}

/** @internal The same options and guards, under the policy with these fields. */
export function varied(owner: Bound, fields: PolicyFields): Bound {
  const guards = owner._guardSet();
  return new Bound(owner.policy.with(fields), guards ? { ...owner._options, guards } : owner._options, owner._signal);
}

/** @internal The same, with a call that this looks into, and that this signal ends as well. */
export function metered(owner: Bound, _meter: Meter, signal: AbortSignal | undefined, request?: unknown): Bound {
  const options = request === undefined ? owner._options : { ...owner._options, request };
  return new Bound(owner.policy, { ...options, _meter }, meeting(signal, owner._signal));
}

function refuseOther(fn: unknown): void {
  if (typeof fn !== "function" || isGenerator(fn)) refuse(fn);
}

function refuse(fn: unknown): never {
  if (typeof fn !== "function") throw new ConfigError("fn", String(fn), "a function");
  throw new ConfigError("fn", `the generator function ${fn.name}`, "a function: use retryStream");
}

/** A policy's first attempt, and what else its calls ask it for. */
interface Known extends Facts {
  readonly _guarded: boolean;
  readonly _hedged: boolean;
  readonly _nested: string;
  /** No attempt can follow the second one. */
  readonly _endsWithTwo: boolean;
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
    super(undefined, {}, undefined);
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
    this._facts ??= this._learned();
    return this._facts;
  }

  private _learned(): Known {
    const { _native: native, targets } = this;
    return {
      _number: 1,
      _target: targets[0] as string,
      _timeoutNs: native.firstTimeoutNs(),
      _connectNs: native.connectTimeoutNs() ?? undefined,
      _isLast: native.endsWith(1),
      _guarded: native.guarded(),
      _hedged: native.hedged(),
      _nested: native.nested(),
      _endsWithTwo: native.endsWith(2),
    };
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
