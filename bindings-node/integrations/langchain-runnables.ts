/** Runnables of LangChain, known by their shape: which they are, what they are called, and copies without retries. */
import { ConfigError } from "reprieve";

/** A runnable, as far as it is called here. */
export interface Runnable {
  readonly [member: string]: unknown;
  invoke(input: unknown, config?: object): unknown;
}

/** Whatever LangChain runs: models, tools, chains, graphs. */
export function isRunnable(thing: unknown): thing is Runnable {
  return (
    Object(thing) === thing && typeof (thing as Runnable).invoke === "function" && "lc_runnable" in (thing as object)
  );
}

export function isChatModel(one: Runnable): boolean {
  return typeof one._generate === "function" && typeof one._llmType === "function";
}

/** The model's name, or else the runnable's. */
export function nameOf(one: Runnable): string {
  for (const name of ["model", "modelName", "name"]) {
    const found = one[name];
    if (typeof found === "string" && found) return found;
  }
  const bound = one.bound as Runnable | undefined;
  return bound ? nameOf(bound) : one.constructor.name;
}

/** A method as LangChain's base class has it. */
export function rooted(one: Runnable, name: string): unknown {
  let found: unknown;
  for (let at = Object.getPrototypeOf(one); at; at = Object.getPrototypeOf(at)) {
    found = Object.getOwnPropertyDescriptor(at, name)?.value ?? found;
  }
  return found;
}

const DEEPEST = 6;

/**
 * The runnable without retries of its own, wherever in it they are: a copy if there are any. Throws `ConfigError` for those
 * that somebody asked for, with `withRetry`.
 */
export function quiet<T extends object>(thing: T, depth = 0): T {
  if ("maxAttemptNumber" in thing) refuseRetry();
  const changed: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(thing)) {
    const other = name === "caller" ? silent(value) : quieted(value, depth);
    if (other !== value) changed[name] = other;
  }
  if (Object.keys(changed).length === 0) return thing;
  return Object.assign(copyOf(thing), changed);
}

/** Retries around a policy, or within it, would multiply with its own. */
export function refuseRetry(): never {
  throw new ConfigError(
    "runnable",
    "one with withRetry()",
    "a runnable that does not retry: the policy does; leave it out",
  );
}

/** What may hold a model: a runnable, what belongs to one, a list of them. */
function quieted(value: unknown, depth: number): unknown {
  if (depth === DEEPEST) return value;
  if (Array.isArray(value)) {
    const others = value.map((one) => quieted(one, depth + 1));
    return others.some((one, i) => one !== value[i]) ? others : value;
  }
  return isRunnable(value) ? quiet(value, depth + 1) : value;
}

/** An `AsyncCaller` that calls once, in the same queue. */
function silent(caller: unknown): unknown {
  const retries = (caller as { maxRetries?: unknown } | undefined)?.maxRetries;
  return retries ? Object.assign(copyOf(caller as object), { maxRetries: 0 }) : caller;
}

function copyOf<T extends object>(thing: T): T {
  return Object.create(Object.getPrototypeOf(thing), Object.getOwnPropertyDescriptors(thing));
}
