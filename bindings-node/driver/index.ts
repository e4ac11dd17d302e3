/** The driver's public surface. An entry gives it an engine with `setEngine` and exports the rest. */
export type { AttemptFunction, Context } from "./attempt.js";
export { Attempt, currentAttempt, setContext } from "./attempt.js";
export { Breaker } from "./breaker.js";
export type { Engine } from "./engine.js";
export {
  AttemptTimeout,
  BadOutput,
  BudgetExhausted,
  CallCancelled,
  CircuitOpen,
  ConfigError,
  CoolingDown,
  DeadlineExceeded,
  Limited,
  MisuseError,
  RetryError,
  RetryExhausted,
  Shed,
  SnapshotError,
} from "./errors.js";
export { type Action, Failure } from "./failure.js";
export { faults } from "./faults.js";
export { Discard } from "./feed.js";
export { type AnyFetch, type FetchOptions, wrapFetch } from "./fetch.js";
export { StreamError } from "./frames.js";
export { Guards, Run, type RunConfig } from "./guards.js";
export { Handle } from "./handle.js";
/** @internal */
export { headerOf, metered, pricedUsage, varied } from "./inner.js";
export { engineFault, ready, setEngine } from "./load.js";
export { Bound, Policy } from "./policy.js";
export type { StreamAttempt } from "./pull.js";
export { Call, classify, type Outcome, type RawOptions, type RestoreOptions } from "./raw.js";
export { Result } from "./result.js";
export { retry } from "./retry.js";
export type { Streamable } from "./source.js";
export { type RetryStream, retryStream, type StreamFunction } from "./stream.js";
export { type Receipt, Trace, traceOf } from "./trace.js";
export type * from "./types.js";
export { type WrapOptions, wrap } from "./wrap.js";
