/** What is told of a call: records to its sink, events to its listener, and a trace of it at its end. */
import { clock } from "./clock.js";
import type { EngineCall } from "./engine.js";
import { asked } from "./faults.js";
import { toJson } from "./fields.js";
import type { Guards } from "./guards.js";
import type { Options } from "./options.js";
import { Trace } from "./trace.js";
import type { CallEvent } from "./types.js";

/** The records and events of one call. */
export class Records {
  /** What has happened so far, where somebody listens. */
  readonly _events: CallEvent[] = [];
  /** Records that are not the machine's. */
  private readonly _own: string[] = [];

  constructor(
    private readonly _call: EngineCall,
    private readonly _guards: Guards | undefined,
    private readonly _options: Options,
    private readonly _heard: boolean,
  ) {}

  /** Hands on what is new. */
  _tell(): void {
    const { sink, onEvent } = this._options;
    if (sink) {
      const moved: string[] = this._guards ? JSON.parse(this._guards._native.takeTransitions()) : [];
      for (const line of moved.concat(JSON.parse(this._call.takeLines()))) this._writes(line);
    }
    if (!this._heard) return;
    for (const line of JSON.parse(this._call.takeEvents())) {
      const event = JSON.parse(line);
      this._events.push(event);
      if (onEvent) asked("onEvent", () => onEvent(event));
    }
  }

  /** A record that is not the machine's. */
  _add(line: string): void {
    this._own.push(line);
    this._writes(line);
  }

  /** What is left of the call's time, as the last receipt says, in nanoseconds. */
  _timeLeft(): number {
    const lines: string[] = JSON.parse(this._call.lines());
    // The record rounds to whole milliseconds: half of one more, or who waits so long would wake before the deadline.
    return JSON.parse(lines.at(-1) ?? "{}").time_left_ms * 1e6 + 5e5;
  }

  /** Everything so far. */
  _trace(traceId: string, note: string): Trace {
    const { _call: call, _own: own } = this;
    const read = (): string => {
      const lines = call.lines();
      return own.length > 0 ? toJson([...own, ...JSON.parse(lines)]) : lines;
    };
    // Few records are looked at: a machine that nobody frees is asked for them then.
    return new Trace(traceId, isFreed(call) ? read() : read, note, clock.now());
  }

  private _writes(line: string): void {
    const { sink } = this._options;
    if (sink) asked("sink", () => (typeof sink === "function" ? sink(line) : sink.write(`${line}\n`)));
  }
}

/** A wasm machine lies in memory that no garbage collector sees. */
export function isFreed(call: EngineCall): call is EngineCall & { free(): void } {
  return "free" in call;
}
