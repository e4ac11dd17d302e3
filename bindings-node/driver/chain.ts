/** An error, and what explains it. */
import { get } from "./reading.js";

const MOST = 50;

/** The thrown value and what explains it, outermost first, each once: causes, and the members of groups. */
export function chainOf(head: unknown): unknown[] {
  const seen = new Set<unknown>();
  const waiting = [head];
  while (waiting.length > 0 && seen.size < MOST) {
    const link = waiting.shift();
    if (seen.has(link)) continue;
    seen.add(link);
    const members = get(link, "errors");
    const next = [...(Array.isArray(members) ? members.slice(0, MOST) : []), get(link, "cause")];
    waiting.unshift(...next.filter((one) => Object(one) === one));
  }
  return [...seen];
}
