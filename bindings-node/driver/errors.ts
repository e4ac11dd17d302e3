/**
 * What reprieve itself throws. A call that gives up throws the caller's own error; these are for where there is none,
 * and for bad input.
 */
import type { Failure } from "./failure.js";
import type { Trace } from "./trace.js";

/** What is known of a call that ended. */
export interface EndDetails {
  stopReason: string;
  attempts: number;
  failure: Failure | undefined;
  /** When it may work, in milliseconds. */
  resumeIn: number | undefined;
  trace: Trace | undefined;
}

type ErrorClass = new (...args: never[]) => Error;

/**
 * Names a class, and lets `instanceof` go by a brand: two copies of the package may be loaded in one program (ESM and
 * CommonJS, a bundle). A class that extends one of these is told apart as usual.
 */
export function branded<C extends ErrorClass>(name: string, made: C): C {
  const brand = Symbol.for(`reprieve.${name}`);
  // Loggers ask the class for its name, which minified code has lost.
  Object.defineProperty(made, "name", { value: name });
  Object.defineProperties(made.prototype, { name: { value: name }, [brand]: { value: true } });
  const { [Symbol.hasInstance]: usual } = Function.prototype;
  Object.defineProperty(made, Symbol.hasInstance, {
    value(thing: unknown): boolean {
      return this === made ? brand in Object(thing) : usual.call(this as never, thing);
    },
  });
  return made;
}

/** A policy, option or value that is not allowed. Names the field, the value and what is allowed. */
export class ConfigError extends Error {
  constructor(
    readonly field: string,
    readonly value: string,
    readonly allowed: string,
  ) {
    super(`${field}: ${value} is not allowed; it takes ${allowed}`);
  }
}
branded("ConfigError", ConfigError);

/** A call ended, and there is no error of the caller's own to throw. */
export class RetryError extends Error implements EndDetails {
  stopReason = "";
  /** All attempts; `retries` counts those after the first. */
  attempts = 0;
  failure: Failure | undefined = undefined;
  resumeIn: number | undefined = undefined;
  trace: Trace | undefined = undefined;

  constructor(message?: string, details?: Partial<EndDetails>, options?: ErrorOptions) {
    super(message, options);
    Object.assign(this, details);
  }

  get retries(): number {
    return Math.max(0, this.attempts - 1);
  }
}
branded("RetryError", RetryError);

/** `check` refused what the function answered, which is here as `value`; `failure` says what it was taken for. */
export class BadOutput extends RetryError {
  declare value: unknown;

  constructor(message?: string, details?: Partial<EndDetails> & { value?: unknown }) {
    super(message, details);
  }
}
branded("BadOutput", BadOutput);

const kindOf = (name: string): typeof RetryError => branded(name, class extends RetryError {});

/** A snapshot that is damaged or from another version. Nothing was resumed. */
export const SnapshotError: ErrorConstructor = branded("SnapshotError", class extends Error {} as ErrorConstructor);
export type SnapshotError = Error;

/** The raw machine was called in a way that its state does not allow. Nothing has changed. */
export const MisuseError: ErrorConstructor = branded("MisuseError", class extends Error {} as ErrorConstructor);
export type MisuseError = Error;

/** All attempts failed, where `onGiveUp: "wrapped"` asks for it; its cause is the last error. */
export const RetryExhausted = kindOf("RetryExhausted");
export type RetryExhausted = RetryError;

/** The time was up before an attempt could start. */
export const DeadlineExceeded = kindOf("DeadlineExceeded");
export type DeadlineExceeded = RetryError;

/** The circuit breaker refused before an attempt could start. */
export const CircuitOpen = kindOf("CircuitOpen");
export type CircuitOpen = RetryError;

/** The target is cooling down or benched, and nothing else was left. */
export const CoolingDown = kindOf("CoolingDown");
export type CoolingDown = RetryError;

/** A limit was reached before an attempt could start. */
export const Limited = kindOf("Limited");
export type Limited = RetryError;

/** Load is being shed: the call never started. */
export const Shed = kindOf("Shed");
export type Shed = RetryError;

/** The run's budget was used up before an attempt could start. */
export const BudgetExhausted = kindOf("BudgetExhausted");
export type BudgetExhausted = RetryError;

/** The call's handle or its run was cancelled. (A caller's signal throws its own reason.) */
export const CallCancelled = kindOf("CallCancelled");
export type CallCancelled = RetryError;

/** An attempt took longer than its timeout and was abandoned. */
export const AttemptTimeout = kindOf("AttemptTimeout");
export type AttemptTimeout = RetryError;

/** What a stop without an error of the caller's own throws. */
export const BY_REASON: { readonly [reason: string]: typeof RetryError } = {
  deadline_exceeded: DeadlineExceeded,
  circuit_open: CircuitOpen,
  cooling_down: CoolingDown,
  limited: Limited,
  shed: Shed,
  run_budget_exhausted: BudgetExhausted,
  cancelled: CallCancelled,
};
