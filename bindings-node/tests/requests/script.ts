/** Functions that play a list of answers and errors, and what is read off a result. */
import { type Attempt, Policy, type PolicyFields, type Result } from "../../driver/index.js";
import { QUICK } from "../setup.js";

export interface Asked {
  readonly model: string;
  readonly token?: string;
}

/** Plays a list, and keeps what it was asked: errors are thrown, the last step again and again. */
export function script(...steps: unknown[]) {
  const requests: unknown[] = [];
  const play = async (attempt: Attempt): Promise<unknown> => {
    requests.push(attempt.request);
    const step = steps.length > 1 ? steps.shift() : steps[0];
    if (step instanceof Error) throw step;
    return step;
  };
  return { play, requests };
}

export const quick = (fields: PolicyFields = {}): Policy => new Policy({ ...QUICK, ...fields });
export const kinds = (result: Result<unknown>): unknown[] => result.trace.receipts.map((receipt) => receipt.kind);
export const reasons = (result: Result<unknown>): unknown[] => result.trace.receipts.map((receipt) => receipt.reason);
export const mend = (request: Asked): Asked => ({ ...request, model: "mended" });

export async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
