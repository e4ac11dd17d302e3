/**
 * Where the engine comes from. The entry says how to get one; it is loaded when a policy is made or an attempt fails,
 * and never when a module is imported.
 */
import type { Engine } from "./engine.js";
import { ConfigError, MisuseError, SnapshotError } from "./errors.js";
import { userWords } from "./fields.js";

let provide: (() => Engine) | undefined;
let prepare: (() => unknown) | undefined;
let loaded: Engine | undefined;
let fault: Error | undefined;

/** Says where the engine comes from; `ahead` is what `ready()` waits for. Forgets an earlier engine and its fault. */
export function setEngine(from: () => Engine, ahead?: () => unknown): void {
  provide = from;
  prepare = ahead;
  loaded = fault = undefined;
}

/** The engine, loaded now if it was not. Throws what stands in the way, the same every time. */
export function engine(): Engine {
  if (loaded) return loaded;
  if (fault) throw fault;
  try {
    if (!provide) throw new Error("no engine was given");
    loaded = provide();
    return loaded;
  } catch (error) {
    fault = new Error("reprieve: the engine does not load, calls make one attempt each", { cause: error });
    // From now on calls are not retried, and throw the caller's own errors: somebody has to hear of it, once.
    console.warn(fault);
    throw fault;
  }
}

/** Loads and compiles the engine ahead of the first call that needs it. */
export async function ready(): Promise<void> {
  await prepare?.();
  engine();
}

/** Why the engine does not load, if it does not: calls then make one attempt each and throw what it throws. */
export function engineFault(): Error | undefined {
  return fault;
}

/** Asks the engine; what it throws comes out as one of ours. */
export function ask<T>(question: () => T): T {
  try {
    return question();
  } catch (error) {
    throw translated(error as Error);
  }
}

function translated(error: Error): Error {
  if (!error.message.startsWith('{"')) return error;
  const { error: kind, field = "input", value = "", allowed, message } = JSON.parse(error.message);
  if (kind === "snapshot") return new SnapshotError(message);
  return kind === "misuse" ? new MisuseError(message) : new ConfigError(...userWords(field, value, allowed ?? message));
}
