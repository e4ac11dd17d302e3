/** What the machine is told of a failed attempt: its evidence, or the failure and what the user's functions say of it. */
import type { Attempt } from "./attempt.js";
import { BadOutput } from "./errors.js";
import { evidenceOf } from "./evidence.js";
import { classified, Failure, kindRow } from "./failure.js";
import { asked } from "./faults.js";
import { toJson } from "./fields.js";
import { engine } from "./load.js";
import type { Bound } from "./policy.js";
import type { CallOptions } from "./types.js";

/** The outcome of an attempt as JSON; `n` counts those on its target. */
export function outcomeOf(
  owner: Bound,
  error: unknown,
  attempt: Attempt,
  n: () => number,
  usage?: Record<string, unknown>,
): string {
  const refused = attempt._answered && error instanceof BadOutput && !error.trace ? error.failure : undefined;
  const evidence = refused ? "" : evidenceOf(error, attempt);
  const { classify, retryIf, backoff } = owner._options;
  if (!refused && !classify && !retryIf && !backoff) {
    return usage ? `{"evidence":${evidence},"usage":${toJson(usage)}}` : `{"evidence":${evidence}}`;
  }
  const failure = refused ?? judged(owner, error, evidence);
  const control = failure.category === "control";
  const again = retryIf && !control ? asked("retryIf", () => retryIf(error, failure)) : undefined;
  const wait = backoff && asked("backoff", () => nanoseconds(backoff(failure, n())));
  return toJson({ failure: failure._wire, retry_if: again == null ? undefined : Boolean(again), backoff: wait, usage });
}

/** What a call of this owner takes the error for. */
export function judged(owner: Bound, error: unknown, evidence = evidenceOf(error)): Failure {
  const failure = classified(evidence, owner.policy._native);
  const { classify } = owner._options;
  if (!classify || failure.category === "control") return failure;
  return asked("classify", () => renamed(failure, classify(error))) ?? failure;
}

function renamed(failure: Failure, said: ReturnType<NonNullable<CallOptions["classify"]>>): Failure {
  if (said == null || said instanceof Failure) return said ?? failure;
  if (!kindRow(said)) throw new TypeError(`classify answered ${String(said)}, which is no kind`);
  const wire = { ...failure._wire, kind: said, category: kindRow(said)?.[1], decided_by: "classify" };
  return new Failure(wire);
}

function nanoseconds(wait: number | string | null | undefined): number | undefined {
  return wait == null ? undefined : engine().parseDuration(wait, 1e6);
}
