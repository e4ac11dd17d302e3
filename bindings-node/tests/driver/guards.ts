/** Guards and runs: who is asked and when, what they refuse, what they are told. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  Breaker,
  Call,
  CallCancelled,
  CircuitOpen,
  ConfigError,
  DeadlineExceeded,
  Guards,
  Policy,
  RetryError,
  Run,
  traceOf,
} from "../../driver/index.js";
import { flaky, never, QUICK, Status, sleep, thrown } from "../setup.js";

/** Counts how often a set was asked whether it is calm. */
function asking(guards: Guards): () => number {
  const { _native: native } = guards as any;
  const { calm } = native;
  let asked = 0;
  native.calm = (...about: unknown[]) => {
    asked += 1;
    return calm.apply(native, about);
  };
  return () => asked;
}

const counting = (consecutiveFailures: number, openFor = "5m"): Policy =>
  new Policy({ ...QUICK, maxAttempts: 1, breaker: { consecutiveFailures, openFor } });
const fine = async (): Promise<string> => "fine";

export function guards(name: string): void {
  describe("guards", () => {
    test("a run: its gate, its budget, its deadline", async () => {
      const run = new Run({ attempts: 2 });
      const result = await new Policy(QUICK).bind({ run }).execute(flaky(9));
      assert.deepEqual([result.attempts, result.stopReason], [2, "run_budget_exhausted"]);
      const other = new Run();
      const waits = { base: 300_000, max: 300_000 };
      const waiting = new Policy({ backoff: waits }).bind({ run: other }).execute(flaky(9));
      const flying = new Policy().bind({ run: other }).execute(never);
      await sleep(2);
      other.cancel("user left");
      for (const ended of [await waiting, await flying]) assert(ended.error instanceof CallCancelled);
      assert.equal(other.ended, true);
      assert.throws(() => new Run({ attempts: -1 }), ConfigError);
      assert.throws(() => new Run({ deadline: "soon" }), ConfigError);
    });

    test("guards: a breaker opens, is shared, and tells when it may work", async () => {
      const guards = new Guards();
      const policy = new Policy({ ...QUICK, maxAttempts: 1, breaker: { consecutiveFailures: 1, openFor: "5m" } });
      const bound = policy.bind({ guards });
      await thrown(bound.call(flaky(9)));
      assert.equal(guards.breakerState(policy), "open");
      const error = await thrown(bound.call(async () => 1));
      assert(error instanceof CircuitOpen);
      assert((error.resumeIn ?? 0) > 0 && (error.resumeIn ?? 0) <= 300_000);
      assert.equal(await policy.call(async () => 1), 1);
      guards.reset();
      assert.equal(await bound.call(async () => 1), 1);
      const breaker = new Breaker({ consecutiveFailures: 1 });
      await thrown(breaker.wrap(flaky(9))(undefined as never));
      assert.equal(breaker.state, "open");
      breaker.reset();
      assert.equal(breaker.state, "closed");
    });

    test("calm guards are asked once, and their breaker opens all the same", async () => {
      const policy = counting(5);
      const asked = asking(policy.guards);
      for (let i = 0; i < 9; i++) assert.equal(await policy.call(fine), "fine");
      const { signal } = new AbortController();
      for (let i = 0; i < 9; i++) assert.equal(await policy.bind({ signal }).call(fine), "fine");
      assert.equal(asked(), 1);
      // A success in between starts the count anew.
      for (const failures of [4, 5]) {
        for (let i = 0; i < failures; i++) {
          assert.equal(policy.guards.breakerState(policy), "closed");
          const error = await thrown(policy.call(flaky(9)));
          assert.equal(traceOf(error)?.receipts.length, 1);
        }
        await policy.call(fine).catch((error) => assert(failures === 5 && error instanceof CircuitOpen));
      }
      assert.equal(policy.guards.breakerState(policy), "open");
      policy.guards.reset();
      const before = asked();
      for (let i = 0; i < 9; i++) assert.equal(await policy.call(fine), "fine");
      assert.equal(asked() - before, 1);
    });

    test("a call that began in a calm tells how it ended when the calm is over", async () => {
      const policy = counting(2);
      const { guards } = policy;
      const asked = asking(guards);
      let end = (_: string): void => {};
      const slow = policy.call(() => new Promise<string>((resolve) => (end = resolve)));
      await thrown(policy.call(flaky(9)));
      assert.equal(asked(), 1);
      end("slow");
      // It has counted: one failure after it does not open the breaker.
      assert.equal(await slow, "slow");
      await thrown(policy.call(flaky(9)));
      assert.deepEqual([asked(), guards.breakerState(policy)], [2, "closed"]);
      await policy.call(fine);
      await policy.call(fine);
      assert.deepEqual([asked(), guards.breakerState(policy)], [4, "closed"]);
      guards.report({ queueDepth: 1 });
      await policy.call(fine);
      assert.equal(asked(), 5);
    });

    test("a call that began in a calm is no probe of the breaker that opened meanwhile", async () => {
      const policy = counting(2, "20ms");
      const { guards } = policy;
      const ends: ((value: unknown) => void)[] = [];
      const slow = () => policy.call(() => new Promise((resolve) => ends.push(resolve)));
      const [good, bad] = [slow(), slow()];
      for (let i = 0; i < 2; i++) await thrown(policy.call(flaky(9)));
      assert.notEqual(guards.breakerState(policy), "closed");
      await sleep(25);
      assert.equal(guards.breakerState(policy), "half_open");
      ends[0]?.("late");
      assert.equal(await good, "late");
      const error = new Status(500);
      ends[1]?.(Promise.reject(error));
      // Its own error, and no refusal.
      assert.equal(await thrown(bad), error);
      assert.equal(traceOf(error)?.receipts.length, 1);
      assert.equal(guards.breakerState(policy), "half_open");
      assert.equal(await policy.call(fine), "fine");
      assert.equal(guards.breakerState(policy), "closed");
    });

    test("a call that began in a calm is charged for its retries, and cools its account", async () => {
      const limited = () => Promise.reject(new Status(429, { "retry-after": "300" }));
      const policy = new Policy({ ...QUICK, cooldown: {}, retryBudget: { capacity: 14 }, retryAfter: { max: "1s" } });
      assert.equal(await policy.call(flaky(1)), 2);
      assert.equal(await policy.call(fine), "fine");
      await thrown(policy.call(limited));
      assert.equal((await thrown(policy.call(fine))).stopReason, "cooling_down");
      const poor = new Policy({ ...QUICK, retryBudget: { capacity: 14, retryCost: 14 } });
      const first = await thrown(poor.call(flaky(9)));
      assert.equal(traceOf(first)?.receipts.length, 2);
    });

    test("a set that something else sees too is asked every time", async () => {
      const policy = counting(1);
      const guards = new Guards();
      const bound = policy.bind({ guards });
      const asked = asking(guards);
      assert.equal(await bound.call(fine), "fine");
      assert.equal(asked(), 1);
      if (name === "native") guards.share();
      const raw = new Call(policy, 1, { guards });
      assert.equal(await bound.call(fine), "fine");
      raw.begin(0);
      raw.onOutcome(1, 1, { failure: { kind: "server_error" } });
      assert((await thrown(bound.call(fine))) instanceof CircuitOpen);
      assert.equal(asked(), 1);
      if (name !== "native") return;
      const there = new Guards();
      const here = policy.bind({ guards: Guards.from(there.share()) });
      assert.equal(await here.call(fine), "fine");
      await thrown(policy.bind({ guards: there }).call(flaky(9)));
      assert((await thrown(here.call(fine))) instanceof CircuitOpen);
    });

    test("shedding and a deadline before an attempt are errors of ours", async () => {
      const guards = new Guards();
      guards.report({ queueDepth: 5 });
      const shed = new Policy({ priority: 1, shed: { queueDepth: 1 } }).bind({ guards });
      assert.equal((await thrown(shed.call(async () => 1))).name, "Shed");
      const run = new Run({ deadline: 0 });
      const late = await thrown(new Policy().bind({ run }).call(async () => 1));
      assert(late instanceof DeadlineExceeded || late instanceof RetryError);
    });
  });
}
