/** A call that was started: look at it, wake it, cancel it, write it down. */
import type { AttemptFunction } from "./attempt.js";
import { clock } from "./clock.js";
import { engine, engineFault } from "./load.js";
import { alone, drive } from "./loop.js";
import type { Bound } from "./policy.js";
import { Result } from "./result.js";
import { Session } from "./session.js";
import { Trace } from "./trace.js";
import type { CallEvent } from "./types.js";

/** A call under way. Awaited, it is the call's value, or throws what the call throws. */
export class Handle<T> implements PromiseLike<T> {
  /** How it ends; not rejected by what the function throws. */
  readonly result: Promise<Result<T>>;
  private readonly _session: Session | undefined;

  /** @internal */
  constructor(owner: Bound, fn: AttemptFunction<unknown>) {
    const session = owner.policy._loads() ? new Session(owner, fn, true) : undefined;
    this._session = session;
    this.result = (
      session ? drive(session, session._begin()).then((end) => session._result(end)) : undriven(owner, fn)
    ) as Promise<Result<T>>;
    // Whoever looks at a handle hears of a fault of ours; nobody has to.
    this.result.catch(() => {});
  }

  /** `ready`, `in_flight`, `waiting` or `ended`. */
  get state(): string {
    return this._session?._call.state() ?? "in_flight";
  }

  /** What has happened so far; the last one says what the call waits for. */
  get events(): readonly CallEvent[] {
    return this._session?._records._events ?? [];
  }

  /** Ends the wait under way. The machine checks: no wait gets shorter than it must be. */
  wake(): void {
    this._session?._wake();
  }

  /** Cancels the call: ends a wait and abandons an attempt at once. */
  cancel(reason = "its handle was cancelled"): void {
    this._session?._cancel(reason);
  }

  /** The call as JSON, to go on elsewhere in any language. A copy: cancel this one if the other goes on. */
  snapshot(): string {
    engine();
    return (this._session as Session)._call.snapshot(clock.now(), clock.wall());
  }

  // biome-ignore lint/suspicious/noThenProperty: a handle can be awaited
  then<A = T, B = never>(
    onValue?: ((value: T) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.result.then((result) => result.unpack()).then(onValue, onError);
  }
}

/** The result of a call that no engine decides about. */
function undriven(owner: Bound, fn: AttemptFunction<unknown>): Promise<Result<unknown>> {
  const trace = new Trace("", "[]", `${engineFault()}`, 0);
  return alone(owner, fn).then(
    (value) => new Result({ ok: true, value, trace }),
    (error) => new Result({ ok: false, error, trace }),
  );
}
