/** A call's trace: its receipts and how it ended, kept beside the error that it throws. */
import { chainOf } from "./chain.js";
import { engine } from "./load.js";
import { get } from "./reading.js";

/** One record: the fields are the wire format's, the same in every language. */
export type Receipt = Record<string, unknown>;

const traces = new WeakMap<object, Trace>();

/** The records of a call that has ended, masked. */
export class Trace {
  /** Of a stream: the items that its consumer has had. */
  declare delivered?: readonly unknown[];

  /** @internal */
  constructor(
    readonly traceId: string,
    private _lines: string | (() => string),
    /** What a person on call wants to know first; empty for a success. */
    readonly note: string,
    /** @internal On the driver's clock. */
    readonly _endedAt: number,
  ) {}

  /** The records as a sink gets them. */
  get lines(): string[] {
    return JSON.parse(this._text());
  }

  /** One record for each attempt and refusal, oldest first. */
  get receipts(): Receipt[] {
    return this._records().filter((record) => !record.record);
  }

  /** The `call_ended` record. */
  get ended(): Receipt | undefined {
    return this._records().find((record) => record.record === "call_ended");
  }

  /** A timeline for people: a line for each receipt, with its span of time drawn to scale. */
  toString(): string {
    return engine().timeline(this.traceId, this._text());
  }

  /** What a logger writes: the records as objects. */
  toJSON(): { traceId: string; note: string; receipts: Receipt[]; ended: Receipt | undefined } {
    const { traceId, note, receipts, ended } = this;
    return { traceId, note, receipts, ended };
  }

  /** What Node's console shows, also within an error. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `Trace ${this.traceId} of ${this.receipts.length} receipts`;
  }

  private _text(): string {
    if (typeof this._lines === "function") this._lines = this._lines();
    return this._lines;
  }

  private _records(): Receipt[] {
    return this.lines.map((line) => JSON.parse(line));
  }
}

/** Keeps a trace for a thrown value. A primitive cannot be told from its equals: it has none. */
export function attach(error: unknown, trace: Trace): void {
  if (Object(error) === error) traces.set(error as object, trace);
}

/**
 * The trace kept for this very value, or for the response that an error was made of. Clients' errors and copies of a
 * response keep its headers: it is kept for them as well.
 */
export function attached(error: unknown): Trace | undefined {
  const of = (name: string): Trace | undefined => traces.get(get(error, name) as object);
  return traces.get(error as object) ?? of("response") ?? of("headers");
}

/** The trace of the call that threw this, looked for along its causes and in its groups; or of a wrapped client's answer. */
export function traceOf(error: unknown): Trace | undefined {
  return chainOf(error).map(attached).find(Boolean);
}
