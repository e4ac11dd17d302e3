/**
 * Faults of the caller's own functions beside a call: sinks, listeners, predicates. They never change how it ends.
 * Each is counted under its role, and warned of once.
 */
const counts: Record<string, number> = {};

/** How often such a function has thrown, by role: `sink`, `onEvent`, `classify`, `retryIf`, `backoff`. */
export function faults(): Record<string, number> {
  return { ...counts };
}

/** What the function says; a fault of its own is counted and says nothing, and so does a promise. */
export function asked<T>(role: string, question: () => T): T | undefined {
  try {
    const answer = question();
    if (typeof (answer as PromiseLike<unknown> | undefined)?.then !== "function") return answer;
    (answer as PromiseLike<unknown>).then(undefined, (fault) => note(role, fault));
  } catch (fault) {
    note(role, fault);
  }
  return undefined;
}

/** Counts a fault, and warns of the first in its role. */
export function note(role: string, fault: unknown): void {
  const count = (counts[role] ?? 0) + 1;
  counts[role] = count;
  if (count === 1) console.warn(`reprieve: ${role} threw; calls go on without it`, fault);
}
