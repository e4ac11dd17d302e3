/** What the core says, as objects: a failure, an action. Names in camelCase, durations in milliseconds. */
import type { EnginePolicy } from "./engine.js";
import { ask, engine } from "./load.js";
import type { Category, Disposition, Kind, RetryAfterSource } from "./types.js";

/** What a driver is told to do next. A duration comes twice: in milliseconds, and whole in nanoseconds. */
export interface Action {
  readonly kind: "attempt" | "retry" | "fallback" | "pending" | "ignored" | "stop" | "done";
  /** Of an attempt. */
  readonly number?: number;
  /** Of an attempt or fallback. */
  readonly target?: string;
  /** Of an attempt: how long it may take. */
  readonly timeout?: number;
  readonly timeoutNs?: number;
  /** Of an attempt: how long after its start another may join it. */
  readonly hedgeAfter?: number;
  readonly hedgeAfterNs?: number;
  /** Of a retry or fallback: how long to wait first. */
  readonly after?: number;
  readonly afterNs?: number;
  /** Of a retry, fallback or stop. */
  readonly reason?: string;
  /** Of a stop. */
  readonly disposition?: Disposition;
  /** Of a stop: when it may work. */
  readonly resumeIn?: number;
  readonly resumeInNs?: number;
  /** Of a stream: how many items to discard, or to resume after. */
  readonly discard?: number;
  readonly resume?: number;
}

/** An action from its JSON: a word, or an object whose one name is the word. */
export function actionOf(json: string): Action {
  const end = json.indexOf('"', 2);
  const kind = json.slice(json.indexOf('"') + 1, end) as Action["kind"];
  return json.startsWith("{") ? Object.assign(spoken(JSON.parse(json)[kind]), { kind }) : { kind };
}

/** One failure, classified. */
export class Failure {
  declare readonly kind: Kind;
  declare readonly category: Category;
  /** The provider's own code and message. */
  declare readonly code?: string;
  declare readonly message?: string;
  /** How long the server asked to wait. */
  declare readonly retryAfter?: number;
  declare readonly retryAfterSource?: RetryAfterSource;
  /** What gave it its kind. */
  declare readonly decidedBy: string;
  /** The server said not to repeat. */
  declare readonly retryForbidden: boolean;
  /** The request may have had an effect. */
  declare readonly mayHaveExecuted: boolean;
  /** The trace id of an inner call that already retried it. */
  declare readonly innerTrace?: string;
  /** What the attempt threw; there for a `repair`, and nowhere else. */
  declare readonly error?: unknown;
  /** What the attempt answered and `check` refused; there for a `repair`, and nowhere else. */
  declare readonly value?: unknown;
  readonly #wire: Record<string, unknown>;

  /** @internal */
  constructor(json: string | Record<string, unknown>) {
    this.#wire = typeof json === "string" ? JSON.parse(json) : json;
    Object.assign(this, spoken(this.#wire));
  }

  /** @internal The same, with what it came from. */
  _of(error: unknown, value: unknown): Failure {
    return Object.assign(new Failure(this.#wire), { error, value });
  }

  /** @internal As the core has it. */
  get _wire(): Record<string, unknown> {
    return this.#wire;
  }

  /** Trying again may help. */
  get retriable(): boolean {
    return this.category === "retriable";
  }

  /** It speaks against the service. */
  get serviceFault(): boolean {
    return kindRow(this.kind)?.[2] ?? false;
  }

  /** A person has to look at it. */
  get alert(): boolean {
    return kindRow(this.kind)?.[3] ?? false;
  }
}

/** A kind's row in the core's table: name, category, service fault, alert. */
export function kindRow(kind: unknown): [string, Category, boolean, boolean] | undefined {
  const rows: [string, Category, boolean, boolean][] = JSON.parse(engine().kinds());
  return rows.find((row) => row[0] === kind);
}

/** A failure from evidence, with the rules of a policy where there is one. */
export function classified(evidence: string, policy?: EnginePolicy): Failure {
  return new Failure(ask(() => engine().classify(evidence, policy)));
}

function spoken(wire: Record<string, unknown>): object {
  const out: Record<string, unknown> = {};
  for (const name in wire) {
    const value = wire[name];
    if (value === null) continue;
    spellings[name] ??= name.replace(/_(.)/g, (_, c) => c.toUpperCase());
    const spelled = spellings[name];
    out[spelled] = value;
    if (spelled.endsWith("Ns")) out[spelled.slice(0, -2)] = (value as number) / 1e6;
  }
  return out;
}

const spellings: Record<string, string> = {};
