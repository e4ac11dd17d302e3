/**
 * What the caller's functions make of a call: `prepare` and `repair` change its request, `check` looks at its answer.
 * Whether a request is repaired is the machine's to say.
 */
import { BadOutput } from "./errors.js";
import { Failure, kindRow } from "./failure.js";

/** A function of the caller's that a call cannot go on without has thrown. Never leaves the driver. */
export class Broken {
  constructor(
    readonly _role: string,
    readonly _error: unknown,
  ) {}
}

/** The request as a function of the caller's changes it, or a promise of it: what it answers, or what there was. */
export function changed(role: string, request: unknown, change: () => unknown): unknown {
  try {
    const answer = change();
    if (!isPromise(answer)) return answer ?? request;
    return answer.then(
      (made) => made ?? request,
      (error) => {
        throw new Broken(role, error);
      },
    );
  } catch (error) {
    throw new Broken(role, error);
  }
}

/** Throws, or answers a promise that is rejected, where `check` refuses the value: its own error, or `BadOutput`. */
export function checked(check: (value: unknown) => unknown, value: unknown): unknown {
  const answer = check(value);
  return isPromise(answer) ? answer.then((said) => judge(said, value)) : judge(answer, value);
}

/** `false`, a kind's name and a `Failure` refuse; anything else, such as what a schema has read, is fine. */
function judge(answer: unknown, value: unknown): void {
  const kind = answer === false ? "invalid_output" : answer;
  let failure = kind instanceof Failure ? kind : undefined;
  if (typeof kind === "string") {
    const row = kindRow(kind);
    if (!row) throw new Broken("check", new TypeError(`check answered "${kind}", which is no kind of failure`));
    failure = new Failure({ kind, category: row[1], message: "check refused the answer" });
  }
  if (failure) throw new BadOutput(`check refused the answer: ${failure.kind}`, { failure, value });
}

export function isPromise(value: unknown): value is Promise<unknown> {
  return typeof (value as PromiseLike<unknown> | undefined)?.then === "function";
}
