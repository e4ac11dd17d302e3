/** A wait that can be ended early, and that goes on while the browser is offline. */
import { clock } from "./clock.js";
import { unwatch, watch } from "./signals.js";
import { join, leave, type Timed } from "./timers.js";

/** A wait under way. */
export interface Wait {
  readonly _over: Promise<void>;
  /** Ends it now. */
  _end(): void;
}

/**
 * Waits. While the browser is offline an attempt would be burnt: then the wait goes on until it is online again, or
 * until `latest` says that the call has no more time.
 */
export function waitFor(ns: number, signal: AbortSignal | undefined, latest: () => number): Wait {
  let end = (): void => {};
  const over = new Promise<void>((resolve) => {
    const now = clock.now();
    let parked = false;
    const watcher = { _aborted: () => end() };
    const timed: Timed = {
      _due: now + ns,
      _place: -1,
      _fire() {
        if (parked || globalThis.navigator?.onLine !== false) return end();
        parked = true;
        timed._due = latest();
        addEventListener("online", end);
        join(timed);
      },
    };
    end = () => {
      leave(timed);
      if (signal) unwatch(signal, watcher);
      if (parked) removeEventListener("online", end);
      resolve();
    };
    if (signal) watch(signal, watcher);
    join(timed);
    if (signal?.aborted) end();
  });
  return { _over: over, _end: end };
}
