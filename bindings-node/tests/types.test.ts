/** What `types.ts` writes out by hand is what the core knows: the same names, no more and no fewer. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Engine } from "../driver/engine.js";
import { engines } from "./engines.js";

const source = readFileSync(new URL("../driver/types.ts", import.meta.url), "utf8");
const { Policy, kinds, says } = engines.native as Engine;

/** The texts of a union, such as `Kind`. */
function union(name: string): string[] {
  const body = new RegExp(`export type ${name} =([^;]+);`).exec(source)?.[1] ?? "";
  return [...body.matchAll(/"(\w+)"/g)].map(([, text]) => text as string).sort();
}

/** The names of an interface's properties, as the core spells them. */
function fields(name: string): string[] {
  const body = new RegExp(`export interface ${name} {\n([\\s\\S]+?)\n}`).exec(source)?.[1] ?? "";
  const names = [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??:/gm)].map(([, field]) => field as string);
  return names.map((field) => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)).sort();
}

/** What the core says it knows where it is given a field that it does not; without what is only reserved. */
function known(...path: string[]): string[] {
  const words = refusal(path, "no_such");
  const names = words.slice(words.lastIndexOf(" are ") + 5).split(", ");
  return names.filter((name) => !/it is not built/.test(refusal(path, name))).sort();
}

/** What the core says is allowed instead of an empty object in this field, if that is not. */
function refusal(path: string[], field: string): string {
  const policy = [...path, field].reduceRight<unknown>((inner, name) => ({ [name]: inner }), {});
  try {
    new Policy(JSON.stringify(policy));
  } catch (error) {
    return JSON.parse((error as Error).message).allowed;
  }
  return "";
}

test("kinds and categories", () => {
  const rows: [string, string][] = JSON.parse(kinds());
  assert.deepEqual(union("Kind"), rows.map(([kind]) => kind).sort());
  assert.deepEqual(union("Category"), [...new Set(rows.map(([, category]) => category))].sort());
});

test("presets", () => assert.deepEqual(union("PresetName"), JSON.parse(Policy.presetNames()).sort()));

test("stop reasons", () => {
  const unknown = says("no_such_reason");
  for (const reason of union("StopReason")) assert.notEqual(says(reason), unknown, reason);
});

for (const [name, path] of Object.entries({
  PolicyFields: [],
  BackoffFields: ["backoff"],
  JitterFields: ["jitter"],
  RetryAfterFields: ["retry_after"],
  BreakerFields: ["breaker"],
  RetryBudgetFields: ["retry_budget"],
  CooldownFields: ["cooldown"],
  ShedFields: ["shed"],
  StreamFields: ["stream"],
  KindFields: ["kinds", "timeout"],
})) {
  test(`the fields of ${name}`, () => assert.deepEqual(fields(name), known(...path)));
}
