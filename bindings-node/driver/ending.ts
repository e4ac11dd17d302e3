/** The end of a call that did not succeed: what it throws, and what is said of it. */
import type { EngineCall } from "./engine.js";
import { BadOutput, BY_REASON, type EndDetails, RetryError, RetryExhausted } from "./errors.js";
import { type Action, Failure } from "./failure.js";
import { engine } from "./load.js";
import { attach, type Trace } from "./trace.js";
import type { Disposition, StopReason } from "./types.js";

/** What a session knows when its call ends. */
export interface Ending {
  readonly _call: EngineCall;
  readonly _signal: AbortSignal | undefined;
  /** The last error, and whether it is a timeout of ours. */
  readonly _failed: { readonly _error: unknown; readonly _ours: boolean } | undefined;
  /** Why the call is cancelled. */
  readonly _cancelled: string | undefined;
  /** The function of the caller's that ended the call by throwing. */
  readonly _brokenBy: string | undefined;
  readonly _wraps: boolean;
  _trace(note: string): Trace;
}

/** How the call ended, as a result has it. */
export interface Ended extends EndDetails {
  readonly stopReason: StopReason;
  readonly trace: Trace;
  readonly disposition: Disposition | undefined;
  readonly error: unknown;
}

/** The error that the call ends with: the caller's own, with its trace kept. */
export function endOf(action: Action, ending: Ending): Ended {
  const { resumeIn, disposition } = action;
  const stopReason = action.reason as StopReason;
  const json = ending._call.failure();
  const failure = json ? new Failure(json) : undefined;
  const attempts = ending._call.attempts();
  // An attempt may also end with a cancellation of its own, which is an error like any other.
  const cancelled = stopReason === "cancelled" ? ending._cancelled : undefined;
  const trace = ending._trace(noteOf(action, attempts, failure, ending._brokenBy, cancelled));
  const details = { stopReason, attempts, failure, resumeIn, trace };
  const failed = ending._failed;
  let error = failed?._error;
  if (cancelled && ending._signal?.aborted) {
    error = ending._signal.reason;
  } else if (cancelled || !failed) {
    error = new (BY_REASON[stopReason] ?? RetryError)(trace.note, details, failed && { cause: error });
  } else if (failed._ours || error instanceof BadOutput) {
    Object.assign(error as RetryError, details);
  }
  attach(error, trace);
  if (ending._wraps && !cancelled) {
    error = new RetryExhausted(trace.note, details, { cause: error });
    attach(error, trace);
  }
  return { ...details, error, disposition };
}

/** What a person on call wants to know first. */
function noteOf(
  { reason, resumeIn, disposition }: Action,
  attempts: number,
  failure: Failure | undefined,
  brokenBy: string | undefined,
  cancelled: string | undefined,
): string {
  const why = brokenBy ? `${brokenBy} threw this` : engine().says(reason as string);
  return [
    cancelled,
    `gave up after ${attempts} attempt${attempts === 1 ? "" : "s"}: ${why} (${reason})`,
    failure && `last failure ${failure.kind}`,
    failure?.kind === "unknown" && 'to retry it, add "unknown" to retryOn, or a rule that says what it is',
    resumeIn !== undefined && `may work in ${Math.ceil(resumeIn)} ms`,
    disposition === "human" && "needs a person",
  ]
    .filter(Boolean)
    .join("; ");
}
