/** A call that fails once, on a page whose content security policy may forbid the engine. */
import { engineFault, Policy, traceOf } from "./reprieve.mjs";

async function calls() {
  const own = Object.assign(new Error("busy"), { status: 503 });
  let attempts = 0;
  const policy = new Policy({ maxAttempts: 2, backoff: { base: 0 } });
  const fails = () => {
    attempts += 1;
    throw own;
  };
  const thrown = await policy.call(fails).catch((error) => error);
  const made = attempts;
  const { error, trace } = await policy.execute(fails);
  const reason = traceOf(thrown)?.ended?.reason;
  return {
    own: thrown === own && error === own,
    attempts: made,
    reason,
    note: trace.note,
    fault: String(engineFault()),
  };
}

// By the page itself: what a debugger evaluates is exempt from its policy.
Object.assign(globalThis, { seen: calls() });
