/** For tests of code that retries: a virtual clock, no real waiting, attempts capped. */
import { type Clock, install } from "./clock.js";
import { ConfigError } from "./errors.js";
import { look } from "./timers.js";

/** Time that only moves when a call waits, or when a test lets it pass. */
export class VirtualClock implements Clock {
  /** Every wait, in milliseconds. */
  readonly sleeps: number[] = [];
  private time = 1e12;

  /** @internal */
  constructor(
    readonly attempts: number | undefined,
    private readonly epoch: number,
  ) {}

  /** @internal */
  now(): number {
    return this.time;
  }

  /** @internal */
  wall(): number {
    return this.epoch + Math.floor((this.time - 1e12) / 1e6);
  }

  /** @internal */
  sleep(ns: number): void {
    this.sleeps.push(ns / 1e6);
    this.move(ns);
  }

  /** Lets milliseconds pass: an attempt that takes a while, one that runs into its timeout. */
  advance(ms: number): void {
    this.move(Math.round(ms * 1e6));
  }

  private move(ns: number): void {
    this.time += ns;
    look();
  }
}

/** What a virtual clock starts with. */
export interface VirtualOptions {
  /** None makes more attempts than this on a target, whatever its policy says. */
  attempts?: number | undefined;
  /** Wall time at the start, in milliseconds since 1970. */
  wall?: number | undefined;
}

/** Every call of this module runs on a virtual clock until `body` has ended. */
export async function virtual<T>(
  body: (clock: VirtualClock) => T,
  { attempts, wall = 1.7e12 }: VirtualOptions = {},
): Promise<Awaited<T>> {
  if (attempts !== undefined && !(Number.isInteger(attempts) && attempts > 0)) {
    throw new ConfigError("attempts", String(attempts), "a whole number from 1");
  }
  const clock = new VirtualClock(attempts, wall);
  const before = install(clock);
  try {
    return await body(clock);
  } finally {
    install(before);
  }
}
