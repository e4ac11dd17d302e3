/** Sources that break, wait and end as a test says, and what comes of them. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type PolicyFields, retryStream } from "../../driver/index.js";
import { QUICK } from "../setup.js";

export const cut = (): Error => Object.assign(new TypeError("terminated"), { code: "UND_ERR_SOCKET" });

/** Collects garbage now. */
setFlagsFromString("--expose-gc");
export const gc: () => void = runInNewContext("gc");

export function readable(items: readonly string[]): ReadableStream<string> {
  return new ReadableStream({
    start(controller) {
      for (const item of items) controller.enqueue(item);
      controller.close();
    },
  });
}

/** One attempt's items; an error among them is thrown, `HANG` never comes. */
export type Script = readonly unknown[];
export const HANG = Symbol("hang");

/** A source that plays a script for each attempt, and takes down what was done to it. */
export class Played {
  pulls = 0;
  closed = 0;
  open = 0;
  attempts = 0;

  constructor(private readonly scripts: readonly Script[]) {}

  readonly fn = (): AsyncIterable<unknown> => {
    const script = this.scripts[Math.min(this.attempts, this.scripts.length - 1)] as Script;
    this.attempts++;
    this.open++;
    let at = 0;
    return {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          this.pulls++;
          if (at === script.length) return { done: true, value: undefined };
          const value = script[at++];
          if (value === HANG) return new Promise(() => {});
          if (value instanceof Error) throw value;
          return { done: false, value };
        },
        return: async () => {
          this.closed++;
          return { done: true, value: undefined };
        },
      }),
    };
  };
}

/** Everything that comes, and what it ends with. */
export async function all(stream: AsyncIterable<unknown>): Promise<{ items: unknown[]; error?: any }> {
  const items: unknown[] = [];
  try {
    for await (const item of stream) items.push(item);
    return { items };
  } catch (error) {
    return { items, error };
  }
}

export const play = (
  scripts: readonly Script[],
  fields: PolicyFields = {},
): Promise<{ items: unknown[]; error?: any }> => all(retryStream(new Played(scripts).fn, { ...QUICK, ...fields }));
