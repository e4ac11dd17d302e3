/**
 * The second attempt of a call whose first one failed, where it follows at once. As the first one it needs no machine:
 * what has happened until then is one outcome, of which a machine can be told later, should the second one fail, too.
 */
import { Attempt } from "./attempt.js";
import { clock } from "./clock.js";
import type { EngineCall } from "./engine.js";
import { outcomeOf } from "./outcome.js";
import type { Bound } from "./policy.js";
import { arrive } from "./timers.js";

/** What came of a first attempt, whose call has no machine yet. */
export interface Past {
  readonly _first: Attempt;
  readonly _outcome: string;
  /** When it ended, and another one began. */
  readonly _at: number;
}

/** Makes the second attempt, if the machine would begin it now; the promise is of what the call comes to. */
export function again(owner: Bound, first: Attempt, error: unknown): Promise<unknown> | undefined {
  // Whoever looks into the call is asked about each of its attempts.
  if (first.isLast || first._signal?.aborted || owner._options._meter) return undefined;
  try {
    const { policy } = owner;
    const native = policy._native;
    const ids = first._named()._seeded(owner._options.seed);
    const t0 = first._began();
    first._outcome = outcomeOf(owner, error, first, () => 1);
    const began = arrive();
    const now = began ?? clock.now();
    const _timeoutNs = native.repeats(ids._seed, t0, now, first._outcome);
    if (_timeoutNs === undefined) return undefined;
    const { _target, _connectNs, _endsWithTwo: _isLast } = policy._known();
    const facts = { _number: 2, _target, _timeoutNs, _connectNs, _isLast };
    const second = new Attempt(facts, owner, first._fn, first._signal, began);
    second._ids = ids;
    second._past = { _first: first, _outcome: first._outcome, _at: now };
    return second._start();
  } catch {
    // What stands in the way of this stands in the machine's way, too.
    return undefined;
  }
}

/** Tells a machine that has begun its first attempt what came of it. */
export function catchUp(call: EngineCall, past: Past | undefined): void {
  if (!past) return;
  call.onOutcome(past._at, 1, past._outcome);
  call.begin(past._at);
}
