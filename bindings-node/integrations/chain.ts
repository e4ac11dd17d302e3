/** What integrations with a list of models have in common: the models as the targets of a policy. */
import {
  Bound,
  type CallOptions,
  ConfigError,
  engineFault,
  metered,
  Policy,
  type PolicyFields,
  type PresetName,
  type Prices,
  pricedUsage,
  varied,
} from "reprieve";

/** A policy, one with options bound, the name of a preset, or fields. */
export type PolicyLike = Bound | PolicyFields | PresetName;

/** What `resilient` takes beside a policy: the options of its calls, and what models cost. */
export interface ChainOptions extends Omit<CallOptions, "targets" | "traceId" | "idempotencyKey"> {
  /** What a million tokens of a model cost, by its name: receipts, results and runs then have a cost. */
  prices?: Prices | undefined;
}

/** The models, by the policy's targets. */
export interface Chain<M> {
  readonly owner: Bound;
  readonly models: readonly M[];
  readonly prices: Prices | undefined;
  of(target: string): M;
}

/** What is under a policy already. */
const resilients = /* @__PURE__ */ new WeakSet<object>();

/** Notes that this is under a policy. */
export function noted<M extends object>(made: M): M {
  resilients.add(made);
  return made;
}

/** The models as the targets of the policy, in order: those that it lists, or their names where it lists none. */
export function chainOf<M>(
  models: readonly M[],
  nameOf: (model: M) => string,
  policy: PolicyLike | undefined,
  options: ChainOptions,
): Chain<M> {
  const { prices, ...rest } = options;
  const twice = models.findIndex((model) => resilients.has(model as object));
  if (twice >= 0) {
    throw new ConfigError(`models[${twice}]`, "one that is under a policy already", "one that is not: one is enough");
  }
  const owner = withTargets(boundOf(policy), models.map(nameOf)).bind(rest);
  // Without an engine a call makes one attempt: at the first.
  if (engineFault()) return { owner, models, prices, of: () => models[0] as M };
  const { mode } = owner.policy.toJSON().stream as { mode?: string };
  if (mode === "restart" || mode === "resume") {
    const allowed = '"before_first_item" or "buffered": what a model streams keeps its type; use retryStream';
    throw new ConfigError("stream.mode", `"${mode}"`, allowed);
  }
  const byTarget = new Map(owner.policy.targets.map((id, i) => [id, models[i] as M]));
  return { owner, models, prices, of: (target) => byTarget.get(target) as M };
}

/** What a call asks for, what ends it, and what is read from its answers. */
export interface Asking {
  readonly request: unknown;
  readonly signal: AbortSignal | undefined;
  /** Usage and model, from an answer. */
  read(answer: unknown): unknown;
  /** The name of the model that was asked last. */
  model(): unknown;
}

/** The policy of a call that counts what it uses. */
export function counted<M>({ owner, prices }: Chain<M>, { request, signal, read, model }: Asking): Bound {
  return metered(owner, { usage: (answer) => pricedUsage(read(answer), prices, model()) }, signal, request);
}

export function boundOf(policy: PolicyLike | undefined): Bound {
  if (policy instanceof Bound) return policy;
  return typeof policy === "string" ? Policy.preset(policy) : new Policy(policy);
}

function withTargets(owner: Bound, names: readonly string[]): Bound {
  if (names.length === 0) throw new ConfigError("models", "an empty list", "a model, or a list of them");
  if (engineFault()) return owner;
  const { targets } = owner.policy;
  if (targets.length === names.length) return owner;
  if (targets.length > 1) {
    const allowed = `a model for each target of the policy (${targets}), or a policy without targets`;
    throw new ConfigError("models", `${names.length} of them`, allowed);
  }
  const ids = names.map((name, i) => (names.indexOf(name) === i ? name : `${name}:${i + 1}`));
  return varied(owner, { targets: ids.map((id) => ({ id })) });
}
