/** `retry`: a function under a policy, in one call. */
import type { AttemptFunction } from "./attempt.js";
import { ConfigError } from "./errors.js";
import { onlySignal } from "./options.js";
import { Bound, Policy } from "./policy.js";
import type { CallOptions, PolicyFields, PresetName } from "./types.js";

const literals = new WeakMap<object, Policy>();
let standard: Policy | undefined;

/**
 * Calls the function until it succeeds or the policy gives up, and then throws what it threw, with a trace (`traceOf`).
 *
 * A literal of fields is read once, the first time that very object is seen: keep it outside of a loop.
 */
export function retry<T>(
  fn: AttemptFunction<T>,
  policy?: Bound | PolicyFields,
  options?: CallOptions,
): Promise<Awaited<T>> {
  try {
    const bound = policyOf(policy);
    const signal = options && onlySignal(options);
    if (signal) return bound._calls(fn, signal);
    return (options ? bound.bind(options) : bound).call(fn);
  } catch (error) {
    return Promise.reject(error);
  }
}

/** The policy of fields: a literal is read once. */
export function policyOf(policy: Bound | PolicyFields | undefined): Bound {
  return policy instanceof Bound ? policy : readOnce(policy);
}

/** The same, where a preset's name will do: for what is made once, and not for each call. */
export function boundOf(policy: Bound | PolicyFields | PresetName | undefined): Bound {
  return typeof policy === "string" ? Policy.preset(policy) : policyOf(policy);
}

function readOnce(policy: PolicyFields | undefined): Bound {
  if (policy === undefined) {
    standard ??= new Policy();
    return standard;
  }
  if (typeof policy !== "object" || policy === null) {
    throw new ConfigError(
      "policy",
      JSON.stringify(policy) ?? typeof policy,
      "a Policy, Policy.preset(name), or fields",
    );
  }
  let made = literals.get(policy);
  if (!made) {
    made = new Policy(policy);
    literals.set(policy, made);
  }
  return made;
}
