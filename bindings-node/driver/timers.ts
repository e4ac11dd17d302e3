/**
 * Deadlines of attempts and ends of waits, in one list with one timer, armed for the earliest.
 *
 * Most attempts are over long before their deadline. The clock, a timer and a listener for each would cost more than
 * the rest of a call, so in a burst of calls all three come late: one sweep at the end of the turn sees to those that
 * are still there.
 */
import { clock, REAL, timerSays } from "./clock.js";

/** Something that is to happen at a moment, unless it leaves the list before. */
export interface Timed {
  /** When, in nanoseconds on the driver's clock; in a burst not known before the sweep. */
  _due: number | undefined;
  /** Its place in the list; below zero outside of it, `NEVER` where it is due at no moment. */
  _place: number;
  /** Its time has come. It has left the list. */
  _fire(): void;
  /** Takes back a timer of its own. */
  _stop?: (() => void) | undefined;
  /** It stays for a while: time to say when it is due, and to listen to whatever may end it sooner. */
  _settle?(): void;
}

/** No moment comes after it. */
export const NEVER = Number.POSITIVE_INFINITY;

const list: Timed[] = [];
/** Takes back the timer that is armed. */
let stop: (() => void) | undefined;
let armedFor = NEVER;
// Which timers were in force then: a test may have put its own in place since, or taken them away.
let armedWith: unknown;
let sweptWith: unknown;

// A burst: more than this many attempts within a millisecond.
const BURST = 8;
let arrived = 0;
let burstEnds = 0;

/** The longest that a timer of the host takes, in milliseconds: a longer one would fire at once. */
const LONGEST = 2 ** 31 - 1;

/** The time at which an attempt starts; nothing in a burst, where it is seen to at the end of the turn. */
export function arrive(): number | undefined {
  return ++arrived > BURST && sweptWith === setTimeout && clock === REAL ? undefined : arriveFirst();
}

/** No sweep is to come as yet. */
function arriveFirst(): number | undefined {
  if (arrived > BURST && clock === REAL && !isApart()) {
    sweptWith = setTimeout;
    setTimeout(sweep, 0);
    return undefined;
  }
  const now = clock.now();
  if (now > burstEnds) {
    burstEnds = now + 1e6;
    arrived = 1;
  }
  return now;
}

/** Joins the list. Without a moment it is due at, the sweep gives it one. */
export function join(timed: Timed): void {
  const { _due: due } = timed;
  // Nothing is armed for it, and it keeps nothing alive.
  timed._place = due === NEVER ? NEVER : list.push(timed) - 1;
  if (due !== undefined) expect(timed, due);
}

/** It is due at a moment: a timer is armed for it where none is that comes as soon. */
function expect(timed: Timed, due: number): void {
  timed._settle?.();
  if (due === NEVER) return;
  if (isApart()) {
    armAlone(timed, due);
    return;
  }
  if (armedWith !== setTimeout) rearm();
  else if (due < armedFor) arm(due);
}

/** Leaves the list; answers whether it was still there. */
export function leave(timed: Timed): boolean {
  const { _place: place } = timed;
  if (place < 0) return false;
  timed._place = -1;
  if (place === NEVER) return true;
  const last = list.pop() as Timed;
  if (last !== timed) {
    list[place] = last;
    last._place = place;
  }
  timed._stop?.();
  // A timer that nothing waits for would keep the process alive.
  if (stop && list.length === 0) disarm();
  return true;
}

/** Does what is due. */
export function look(): void {
  const now = clock.now();
  for (const timed of list.filter((one) => (one._due ?? NEVER) <= now)) if (leave(timed)) timed._fire();
  rearm();
}

function sweep(): void {
  sweptWith = undefined;
  arrived = 0;
  for (const timed of [...list]) if (timed._place >= 0) timed._settle?.();
  look();
}

function rearm(): void {
  let next = NEVER;
  for (const timed of list) next = Math.min(next, timed._due ?? NEVER);
  disarm();
  if (next < NEVER) arm(next);
}

function disarm(): void {
  stop?.();
  stop = undefined;
  armedFor = NEVER;
}

function arm(moment: number): void {
  disarm();
  armedFor = moment;
  armedWith = setTimeout;
  if (!clock.sleep) stop = at(moment, look);
}

/** Acts at a moment, or before it where that is further away than a timer can say. */
function at(moment: number, act: () => void): () => void {
  const now = clock.now();
  // Rounded up, or it would be too early and have to be set again.
  const ms = Math.min(LONGEST, Math.max(0, Math.ceil((moment - now) / 1e6)));
  const { clearTimeout } = globalThis;
  const timer = setTimeout(() => {
    timerSays(Math.min(moment, now + LONGEST * 1e6));
    act();
  }, ms);
  return () => clearTimeout(timer);
}

// Where a timer belongs to the request that set it and ends with it, requests cannot share one.
let apart: boolean | undefined;

function isApart(): boolean {
  apart ??= globalThis.navigator?.userAgent === "Cloudflare-Workers";
  return apart;
}

function armAlone(timed: Timed, moment: number): void {
  timed._stop = at(moment, () => {
    if (clock.now() < moment) armAlone(timed, moment);
    else if (leave(timed)) timed._fire();
  });
}
