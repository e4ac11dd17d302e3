/** The options of a call: what is bound to it beside its policy. Functions live here; a policy holds data only. */
import type { Attempt } from "./attempt.js";
import { ConfigError } from "./errors.js";
import { kindRow } from "./failure.js";
import { Guards } from "./guards.js";
import { ask, engine } from "./load.js";
import type { Policy } from "./policy.js";
import type { CallOptions } from "./types.js";

/** Options as a call uses them: what was taken back or never given is absent. */
export type Options = { readonly [name in Exclude<keyof CallOptions, "request">]?: NonNullable<CallOptions[name]> } & {
  readonly request?: unknown;
  /** Not for `bind`: a wrapped client has one for each call. */
  readonly _meter?: Meter;
};

/** What a wrapped client knows of a call of its own. Integrations have one, too, and are no part of the driver. */
export interface Meter {
  /** What wrapping changed. */
  readonly changed?: string;
  /** What `check` looks at in an attempt's value, where that is not the value itself. */
  seen?(value: unknown): unknown;
  /** What an attempt used, read from its value. */
  usage(value: unknown): Record<string, unknown> | undefined;
  /** The record of what the client sent by itself beside the attempt that has just ended, if it did. */
  hidden?(attempt: Attempt): string | undefined;
}

type Check = string | readonly [passes: (value: any) => boolean, allowed: string];

/** Calling it answers a generator, whatever it says inside: of use where a stream is asked for, and nowhere else. */
export function isGenerator(fn: object): boolean {
  const tag = (fn as { [Symbol.toStringTag]?: string })[Symbol.toStringTag];
  return tag === "GeneratorFunction" || tag === "AsyncGeneratorFunction";
}

const isFunction = (value: unknown): boolean => typeof value === "function" && !isGenerator(value);
const FUNCTION: Check = [isFunction, "a function, and no generator"];
const tableOf =
  (passes: (value: unknown) => boolean): ((table: unknown) => boolean) =>
  (table) =>
    typeof table === "object" && Object.values(table as object).every(passes);

/** A type's name, or a test and what is allowed. */
const CHECKS: { readonly [name in keyof CallOptions]-?: Check } = {
  scene: "string",
  promptVersion: "string",
  traceId: [(value) => /^[0-9a-f]{32}$/.test(value), "32 lower-case hexadecimal digits"],
  seed: [isSeed, "a u64: a bigint, a safe integer, or decimal text"],
  idempotencyKey: "string",
  classify: FUNCTION,
  retryIf: FUNCTION,
  backoff: FUNCTION,
  targets: [tableOf((value) => typeof value === "function"), "an object from target id to function"],
  request: [() => true, "anything"],
  check: FUNCTION,
  prepare: FUNCTION,
  repair: [tableOf(isFunction), "an object from kind of failure to function, and no generator"],
  guards: [(value) => value instanceof Guards, "a Guards"],
  // Not by its class, which who has no runs does not load.
  run: [(value) => value._wakers, "a Run"],
  sink: [(value) => isFunction(value) || isFunction(value.write), "a function or a stream"],
  onEvent: FUNCTION,
  signal: [isSignal, "an AbortSignal"],
  onGiveUp: [(value) => /^(original|wrapped)$/.test(value), '"original" or "wrapped"'],
  unmask: [Array.isArray, "a list of names"],
};

/** These options with what is given over them, checked. */
export function merged(policy: Policy, options: Options, given: CallOptions): Options {
  const out: Record<string, unknown> = { ...options };
  for (const name in given) {
    const value = given[name as keyof CallOptions];
    if (value === undefined) continue;
    const check = CHECKS[name as keyof CallOptions];
    if (!check)
      throw new ConfigError(name, typeof value, `no such option; the options are ${Object.keys(CHECKS).join(", ")}`);
    if (value !== null && !(typeof check === "string" ? typeof value === check : check[0](value))) {
      throw new ConfigError(name, String(value), typeof check === "string" ? `a ${check}` : check[1]);
    }
    out[name] = value ?? undefined;
  }
  for (const id in given.targets) {
    if (!policy.targets.includes(id)) throw new ConfigError(`targets.${id}`, "a function", `${policy.targets}`);
  }
  if (policy._loads()) {
    for (const kind in given.repair) {
      const category = kindRow(kind)?.[1] ?? "control";
      if (category === "control") throw new ConfigError(`repair.${kind}`, "a function", "a kind of failure to repair");
    }
  }
  if (given.unmask) ask(() => engine().mask("", JSON.stringify(given.unmask)));
  return out;
}

/** Nothing here has to be known before an attempt fails. */
export function isPlain(o: Options): boolean {
  const known = o.traceId ?? o.idempotencyKey ?? o.run ?? o.sink ?? o.onEvent ?? o.targets;
  return (known ?? o.check ?? o.prepare ?? o.repair) === undefined;
}

/** The signal, if nothing else is given: it changes from call to call, and tells nothing else about them. */
export function onlySignal(given: CallOptions): AbortSignal | undefined {
  for (const name in given) if (name !== "signal") return undefined;
  return isSignal(given.signal) ? given.signal : undefined;
}

/** What aborts with the first of two signals. */
export function meeting(one: AbortSignal | undefined, other: AbortSignal | undefined): AbortSignal | undefined {
  return one && other && one !== other ? AbortSignal.any([one, other]) : (one ?? other);
}

/** Of this realm, or of another. */
export function isSignal(value: unknown): value is AbortSignal {
  return typeof (value as AbortSignal | undefined)?.addEventListener === "function";
}

function isSeed(value: unknown): boolean {
  const whole = typeof value === "bigint" || Number.isSafeInteger(value) || /^\d{1,20}$/.test(value as string);
  return whole && BigInt.asUintN(64, BigInt(value as string)) === BigInt(value as string);
}
