/**
 * Fields as a user writes them (camelCase, numbers, `undefined`) into what the core reads, and the names in the core's
 * errors back. What is allowed is the core's to say.
 */

/** JSON of a policy's fields, for the core. An underscore is no part of a name here: doubled, no field has it. */
export function fieldsToJson(fields: unknown): string {
  return toJson(renamed(fields, /[A-Z_]/g));
}

/** A value with the core's names; it may have them already. */
export function toWire(value: unknown): unknown {
  return renamed(value, /[A-Z]/g);
}

/** JSON without lone surrogates, which are not Unicode. */
export function toJson(value: unknown): string {
  const text = JSON.stringify(value);
  return text.includes("\\ud") ? text.replace(/\\(?:(ud[89a-f]..)|.)/g, (all, lone) => (lone ? "\\ufffd" : all)) : text;
}

// What is deeper is none of ours, or a cycle.
const DEEPEST = 64;

/** `kept`: how many levels of names are not the core's: `kinds` are named by kinds, a body by whoever sent it. */
function renamed(value: unknown, spelled: RegExp, kept = 0, depth = 0): unknown {
  if (Array.isArray(value)) return value.map((item) => renamed(item, spelled, kept, depth));
  if (typeof value === "object" && value && depth < DEEPEST) {
    const out: Record<string, unknown> = {};
    for (const [name, item] of Object.entries(value)) {
      if (item === undefined) continue;
      const inner = name === "kinds" ? 1 : name === "body" ? DEEPEST : kept - 1;
      const own = kept > 0 ? name : name.replace(spelled, (c) => `_${c.toLowerCase()}`);
      out[own] = renamed(item, spelled, inner, depth + 1);
    }
    return out;
  }
  const isJson = value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
  // NaN, a function, a bigint: an object of that name, which no field takes, so that the core says what it does take.
  return isJson ? value : { [String(value)]: null };
}

const camel = (text: string): string =>
  text.replace(/"[^"]*"|_([a-z_])/g, (all, c) => (c ? c.replace(/[a-z]/, c.toUpperCase()) : all));

/** Field, value and what is allowed, in the user's case. */
export function userWords(field: string, value: string, allowed: string): [string, string, string] {
  return [
    field
      .split(".")
      .map((name, at, path) => (path[at - 1] === "kinds" ? name : camel(name)))
      .join("."),
    value.replace(/^\{"(.*)":null\}$/, "$1"),
    allowed.includes("kinds are") ? allowed : camel(allowed),
  ];
}
