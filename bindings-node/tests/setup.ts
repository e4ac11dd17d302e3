/** What most tests of the driver need: a policy that waits for nothing, errors with a status, functions that fail. */
import type { Attempt } from "../driver/index.js";

/** Retries at once. */
export const QUICK = { backoff: { kind: "constant", base: 0 }, jitter: { kind: "none" } } as const;

export class Status extends Error {
  constructor(
    readonly status: number,
    readonly headers: Record<string, string> = {},
  ) {
    super(`status ${status}`);
  }
}

/** Fails so many times, then answers how often it was called. */
export function flaky(failures: number, error: unknown = new Status(500)): (attempt: Attempt) => Promise<number> {
  let calls = 0;
  return async () => {
    calls += 1;
    if (calls <= failures) throw error;
    return calls;
  };
}

export const never = (): Promise<never> => new Promise(() => {});
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Everything that is ready to run has run, so many times. */
export const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
};
export const turn = (): Promise<void> => turns(1);

/** What a promise is rejected with. */
export async function thrown(promise: Promise<unknown>): Promise<any> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
