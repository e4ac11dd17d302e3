/** The loop of one call, and what stands around it. */
import { Attempt, type AttemptFunction, type Facts, type How, OK } from "./attempt.js";
import { clock } from "./clock.js";
import type { Action } from "./failure.js";
import { note } from "./faults.js";
import type { Bound } from "./policy.js";
import { Session } from "./session.js";

/** Does what the machine says until it is enough. Answers the action that ended the call. */
export async function drive(session: Session, next: Action): Promise<Action> {
  let action = next;
  try {
    for (;;) {
      if (action.kind === "attempt") {
        action = await session._attempt(action);
      } else if (action.kind === "retry" || action.kind === "fallback") {
        const broken = action.reason === "repair" ? await session._repair() : undefined;
        if (!broken && action.afterNs) await session._wait(action.afterNs);
        action = broken ?? session._begin();
      } else {
        return action;
      }
    }
  } finally {
    session._close();
  }
}

/** A whole call. */
export async function perform(owner: Bound, fn: AttemptFunction<unknown>): Promise<unknown> {
  if (!owner.policy._loads()) return alone(owner, fn);
  const session = new Session(owner, fn, false);
  return session._finish(await drive(session, session._begin()));
}

/** The rest of a call whose first attempt the happy path made, and which did not succeed, or no longer in a calm. */
export async function resume(owner: Bound, first: Attempt, how: How, value: unknown): Promise<unknown> {
  let session: Session;
  let action: Action;
  try {
    session = new Session(owner, first._fn, false, first);
    action = await drive(session, session._ended(first, how, value));
  } catch (fault) {
    // An engine that breaks must not hide what went wrong in the caller's function.
    note("engine", fault);
    if (how === OK) return value;
    throw value;
  }
  return session._finish(action);
}

const ONE: Facts = { _number: 1, _target: "primary", _timeoutNs: 6e11, _connectNs: undefined, _isLast: true };

/** One attempt, without an engine: what it comes to is what the call comes to. */
export async function alone({ _signal, _request }: Bound, fn: AttemptFunction<unknown>): Promise<unknown> {
  _signal?.throwIfAborted();
  const _ended = (_: unknown, how: How, value: unknown): unknown => (how === OK ? value : Promise.reject(value));
  return new Attempt(ONE, { _run: undefined, _request, _ended }, fn, _signal, clock.now())._start();
}
