/**
 * The clock that the driver asks and waits on, in nanoseconds. `reprieve/testing` puts a virtual one in its place.
 * Everything is looked up when it is used: fake timers work whenever they are installed.
 */
export interface Clock {
  /** Monotonic nanoseconds. */
  now(): number;
  /** Milliseconds since 1970. */
  wall(): number;
  /** A virtual clock moves its hands in place of a wait. */
  sleep?(ns: number): void;
  /** The most attempts a call may make on a target here, whatever its policy says. */
  readonly attempts?: number | undefined;
}

// How far time runs ahead of `performance.now()`.
let ahead = 0;

export const REAL: Clock = {
  now: () => Math.round(performance.now() * 1e6) + ahead,
  wall: () => Date.now(),
};

/** Counts from another epoch, by which it is this late now. */
export function align(now: number): void {
  ahead = now - Math.round(performance.now() * 1e6);
}

/** The clock in force. */
export let clock: Clock = REAL;

/** Puts another clock in force, and answers the one before. */
export function install(next: Clock): Clock {
  const before = clock;
  clock = next;
  return before;
}

// Timers may fire up to this much early.
const EARLY = 5e6;

/**
 * A timer fired that was set for this moment. Where it comes long before its time somebody plays with timers and left
 * `performance` alone (as Node's own mock does): then the time has come because the timer says so.
 */
export function timerSays(moment: number): void {
  const early = moment - REAL.now();
  if (early > EARLY) ahead += early;
}
