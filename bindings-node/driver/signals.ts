/**
 * The caller's signals. Many calls may share one, and a runtime warns of a leak where each adds a listener of its own:
 * a signal gets one listener of ours, for as long as anybody waits for it.
 */

/** Who is told that a signal has aborted. */
export interface Watcher {
  _aborted(): void;
}

class Watchers extends Set<Watcher> {
  handleEvent(): void {
    for (const watcher of [...this]) watcher._aborted();
  }
}

const watched = new WeakMap<AbortSignal, Watchers>();

/** Tells the watcher when the signal aborts. */
export function watch(signal: AbortSignal, watcher: Watcher): void {
  let all = watched.get(signal);
  if (!all) {
    all = new Watchers();
    watched.set(signal, all);
    signal.addEventListener("abort", all);
  }
  all.add(watcher);
}

/** No longer. */
export function unwatch(signal: AbortSignal, watcher: Watcher): void {
  const all = watched.get(signal);
  if (all?.delete(watcher) && all.size === 0) {
    watched.delete(signal);
    signal.removeEventListener("abort", all);
  }
}
