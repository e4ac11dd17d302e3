/** Attempts beside each other: while one is slow another joins it; the first answer wins, the others are abandoned. */
import { clock } from "./clock.js";
import type { Action } from "./failure.js";
import { waitFor } from "./wait.js";

/** Who starts attempts, and answers with what each came to. */
export interface Starter {
  _launch(action: Action): Promise<Action>;
  /** Whether another attempt joins those in flight. */
  _hedge(): Action;
}

/** Runs the attempt of this action and those that join it, until there is something else to do. */
export async function race(starter: Starter, first: Action): Promise<Action> {
  let action = first;
  let decide: (action: Action) => void = () => {};
  let fail: (fault: unknown) => void = () => {};
  const decided = new Promise<Action>((resolve, reject) => {
    decide = resolve;
    fail = reject;
  });
  const told = (next: Action): void => {
    if (next.kind !== "pending" && next.kind !== "ignored") decide(next);
  };
  while (action.kind === "attempt") {
    starter._launch(action).then(told, fail);
    if (action.hedgeAfterNs === undefined) break;
    // Awaited here, and not acted on by the timer: what runs next runs in the context of this call.
    if (!(await isSlow(action.hedgeAfterNs, decided))) break;
    action = starter._hedge();
  }
  return decided;
}

/** Waits; answers whether the time has passed before anything was decided. */
async function isSlow(ns: number, decided: Promise<unknown>): Promise<boolean> {
  const pause = waitFor(ns, undefined, () => clock.now());
  try {
    return await Promise.race([pause._over.then(() => true), decided.then(() => false)]);
  } finally {
    pause._end();
  }
}
