/**
 * The conformance vectors: loaded and counted, and compared. `tests/vectors/README.md` says what the words mean. A
 * runner plays every case of the index or says why it does not; a count that differs fails.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

export type Case = Record<string, any>;

/** A case went otherwise than it says. */
export class Differs extends Error {}

// From `build`, where this runs.
const VECTORS = new URL("../../tests/vectors/", import.meta.url);

const INDEX: { files: { file: string; topic: string; cases: number }[] } = read("index.json");

/** Every topic that the index lists. */
export const topics = [...new Set(INDEX.files.map((entry) => entry.topic))].sort();

/** The cases of a topic, from every file that the index lists; counts, topics and ids of all files are checked. */
export function cases(topic: string): Case[] {
  const ids = new Set<string>();
  const found: Case[] = [];
  for (const entry of INDEX.files) {
    const file = read(entry.file) as { topic: string; cases: Case[] };
    assert.equal(file.cases.length, entry.cases, `${entry.file}: the index counts otherwise`);
    assert.equal(file.topic, entry.topic, `${entry.file}: the index names another topic`);
    for (const { id } of file.cases) {
      assert(!ids.has(id), `${entry.file}: the id ${id} is taken`);
      ids.add(id);
    }
    if (entry.topic === topic) found.push(...file.cases);
  }
  assert(found.length > 0, `the index lists no cases of topic ${topic}`);
  return found;
}

function read(name: string) {
  return JSON.parse(readFileSync(new URL(name, VECTORS), "utf8"));
}

/** Plays every case of a topic, and tells of all that failed, not just of the first. */
export async function playAll(
  topic: string,
  mode: string,
  play: (one: Case) => unknown,
  unplayable: (one: Case) => string | undefined = () => undefined,
): Promise<string> {
  const failures: string[] = [];
  const skipped = new Map<string, number>();
  let ran = 0;
  for (const one of cases(topic)) {
    const why = unplayable(one);
    if (why) {
      skipped.set(why, (skipped.get(why) ?? 0) + 1);
      continue;
    }
    ran += 1;
    try {
      await play(one);
    } catch (error) {
      const told = error instanceof Differs ? error.message : (error as Error)?.stack;
      failures.push(`${one.id}: ${one.description}\n    ${told}`);
    }
  }
  const reasons = [...skipped].map(([why, count]) => `${count} ${why}`).join("; ");
  const line = `${topic} ${mode}: ${ran} ran, ${cases(topic).length - ran} skipped${reasons && ` (${reasons})`}`;
  assert.equal(failures.length, 0, `${failures.length} failed; ${line}\n${failures.join("\n")}`);
  return line;
}

// --- comparing -------------------------------------------------------------------------------------------------------

const UNITS: Record<string, bigint> = {
  ns: 1n,
  us: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
  d: 86_400_000_000_000n,
};

/** A duration of the vectors in nanoseconds. Read here and not by the engine, which is what is being tested. */
export function ns(text: string): number {
  let total = 0n;
  const rest = text.replaceAll(/([0-9]+)(?:\.([0-9]+))?(ns|us|ms|s|m|h|d)/g, (_, whole, part = "", unit) => {
    const scaled = BigInt(whole + part) * (UNITS[unit] as bigint);
    const ten = 10n ** BigInt(part.length);
    assert(scaled % ten === 0n, `${text} is finer than a nanosecond`);
    total += scaled / ten;
    return "";
  });
  assert(rest === "" && text !== "", `${text} is no duration`);
  return Number(total);
}

/**
 * What is expected must be there; what is not mentioned is not compared; `null` must be absent. An expected duration
 * `x` is text, compared with the nanoseconds in `x_ns`.
 */
export function check(expect: unknown, seen: unknown): void {
  if (!matches(expect, seen)) {
    throw new Differs(`expected ${JSON.stringify(expect)}\n    saw      ${JSON.stringify(seen)}`);
  }
}

function matches(expect: unknown, seen: unknown): boolean {
  if (Array.isArray(expect)) {
    return Array.isArray(seen) && expect.length === seen.length && expect.every((want, i) => matches(want, seen[i]));
  }
  if (typeof expect === "object" && expect !== null) {
    return typeof seen === "object" && seen !== null && Object.entries(expect).every(fieldMatches(seen as Case));
  }
  return Object.is(expect ?? undefined, seen ?? undefined);
}

function fieldMatches(seen: Case) {
  return ([name, want]: [string, unknown]): boolean => {
    const nanoseconds = seen[`${name}_ns`];
    if (typeof want === "string" && typeof nanoseconds === "number") return ns(want) === nanoseconds;
    // What must be absent must be absent by either name.
    if (want === null && typeof nanoseconds === "number") return false;
    return matches(want, seen[name]);
  };
}

/** The key of an object that is one of the things to do, or a word by itself. */
export function verb(what: unknown): [word: string, body: unknown] {
  if (typeof what === "string") return [what, undefined];
  const found = Object.entries(what as Case).filter(([word]) => VERBS.has(word));
  const [one] = found;
  if (!one || found.length > 1) throw new Differs(`${JSON.stringify(what)} is not one thing to do`);
  return one;
}

const VERBS = new Set([
  "success",
  "failure",
  "evidence",
  "call",
  "snapshot",
  "restore",
  "report",
  "run_cancel",
  "first_item",
]);
