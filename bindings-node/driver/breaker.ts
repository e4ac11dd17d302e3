/** A circuit breaker on its own. */
import type { AttemptFunction } from "./attempt.js";
import { Policy } from "./policy.js";
import type { BreakerFields } from "./types.js";

/** A circuit breaker: a policy of one attempt. Takes the fields of a policy's `breaker`. */
export class Breaker {
  private readonly _policy: Policy;

  constructor(config: BreakerFields = {}) {
    this._policy = new Policy({ maxAttempts: 1, breaker: config });
  }

  /** Calls the function, or throws `CircuitOpen`. */
  call<T>(fn: AttemptFunction<T>): Promise<Awaited<T>> {
    return this._policy.call(fn);
  }

  /** The function behind the breaker. */
  wrap<This, Args extends unknown[], T>(
    fn: (this: This, ...args: Args) => T,
  ): (this: This, ...args: Args) => Promise<Awaited<T>> {
    return this._policy.wrap(fn);
  }

  /** `closed`, `open` or `half_open`. */
  get state(): string {
    return this._policy.guards.breakerState(this._policy) ?? "closed";
  }

  /** Closes it and forgets every failure. */
  reset(): void {
    this._policy.guards.reset();
  }
}
