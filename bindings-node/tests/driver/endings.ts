/** Attempts and calls that are cut: by a timeout, by a signal, by a handle. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, mock, test } from "node:test";
import { AttemptTimeout, Call, CallCancelled, Policy, RetryError, retry, traceOf } from "../../driver/index.js";
import { flaky, never, QUICK, Status, sleep, thrown, turns } from "../setup.js";

export function endings(): void {
  describe("endings", () => {
    test("a thenable is awaited, and one that never settles is cut at its timeout", async () => {
      // biome-ignore lint/suspicious/noThenProperty: it is what is tested
      assert.equal(await retry(() => ({ then: (done: (n: number) => void) => done(5) })), 5);
      // biome-ignore lint/suspicious/noThenProperty: it is what is tested
      const error = await thrown(retry(() => ({ then() {} }), { ...QUICK, attemptTimeout: 10, maxAttempts: 2 }));
      assert(error instanceof AttemptTimeout && error instanceof RetryError);
      assert.deepEqual(
        [error.name, error.attempts, error.retries, error.stopReason],
        ["AttemptTimeout", 2, 1, "attempts_exhausted"],
      );
      assert.equal(error.failure?.kind, "timeout");
    });

    test("a late result is dropped, no ghost attempt follows, and nothing is left unhandled", async () => {
      const unhandled = mock.fn();
      process.on("unhandledRejection", unhandled);
      let calls = 0;
      let goOn = (): void => {};
      const second = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      const value = await retry(
        async (attempt) => {
          calls += 1;
          if (attempt.number === 1) {
            await second;
            throw new Error("late");
          }
          goOn();
          return attempt.number;
        },
        { ...QUICK, attemptTimeout: 10 },
      );
      await sleep(10);
      assert.deepEqual([value, calls, unhandled.mock.callCount()], [2, 2, 0]);
      process.off("unhandledRejection", unhandled);
    });

    test("an attempt's signal is fresh, aborts at its timeout, and never after a success", async () => {
      const signals: AbortSignal[] = [];
      await retry(
        (attempt) => {
          signals.push(attempt.signal);
          return attempt.number === 1 ? never() : 1;
        },
        { ...QUICK, attemptTimeout: 10 },
      );
      await sleep(20);
      assert.deepEqual(
        signals.map((signal) => signal.aborted),
        [true, false],
      );
      assert(signals[0]?.reason instanceof AttemptTimeout);
    });

    test("the caller's signal ends an attempt and a wait at once, with its own reason", async () => {
      const reason = { mine: true };
      for (const fn of [never, flaky(9)]) {
        const controller = new AbortController();
        const waits = { base: 300_000, max: 300_000 };
        const call = retry(fn, { backoff: waits }, { signal: controller.signal });
        await sleep(5);
        controller.abort(reason);
        const raced = await Promise.race([thrown(call), turns(2).then(() => "slow")]);
        assert.equal(raced, reason);
        assert.equal(getEventListeners(controller.signal, "abort").length, 0);
        assert.equal(traceOf(reason)?.ended?.reason, "cancelled");
      }
    });

    test("a signal that has aborted starts nothing; AbortSignal.timeout and .any work", async () => {
      const fn = mock.fn(never);
      assert.equal(await thrown(retry(fn, {}, { signal: AbortSignal.abort("stop") })), "stop");
      assert.equal(fn.mock.callCount(), 0);
      assert.equal((await thrown(retry(never, {}, { signal: AbortSignal.timeout(5) }))).name, "TimeoutError");
      const controller = new AbortController();
      const any = (AbortSignal as any).any?.([controller.signal, AbortSignal.timeout(60_000)]) ?? controller.signal;
      setTimeout(() => controller.abort(), 5);
      assert.equal((await thrown(retry(never, {}, { signal: any }))).name, "AbortError");
    });

    test("no listener is left after 100,000 calls", async () => {
      const { signal } = new AbortController();
      const bound = new Policy(QUICK).bind({ signal });
      for (let i = 0; i < 100_000; i++) await bound.call(async () => i);
      await Promise.all(Array.from({ length: 100 }, () => bound.call(() => sleep(2))));
      await bound.call(flaky(1));
      assert.equal(getEventListeners(signal, "abort").length, 0);
    });

    test("a burst of calls times out, is cancelled and is told the time like single ones", async () => {
      const policy = new Policy({ ...QUICK, attemptTimeout: 20, maxAttempts: 1 });
      const all = await Promise.all(Array.from({ length: 200 }, () => thrown(policy.call(never))));
      assert(all.every((error) => error instanceof AttemptTimeout));
      const controller = new AbortController();
      const patient = policy.with({ attemptTimeout: "5m" });
      const cut = Array.from({ length: 200 }, () => thrown(patient.bind({ signal: controller.signal }).call(never)));
      await sleep(5);
      controller.abort("stop");
      assert((await Promise.all(cut)).every((reason) => reason === "stop"));
      const left = await Promise.all(Array.from({ length: 50 }, () => patient.call((attempt) => attempt.timeLeft)));
      assert(left.every((ms) => ms > 0 && ms <= 300_000));
    });

    test("a handle: state, events, wake, cancel, snapshot, the value", async () => {
      const policy = new Policy({ backoff: { base: 300_000, max: 300_000 }, jitter: { kind: "none" } });
      const handle = policy.start(flaky(1));
      await sleep(2);
      assert.equal(handle.state, "waiting");
      assert.deepEqual(
        handle.events.map((event) => event.event),
        ["attempt_started", "attempt_failed", "will_retry"],
      );
      handle.wake();
      await sleep(1);
      assert.equal(handle.state, "waiting");
      const [call, action] = Call.restore(handle.snapshot(), 0, Date.now());
      assert.deepEqual([call.state, action.kind, action.reason], ["waiting", "retry", "server_error"]);
      handle.cancel("enough");
      const error = await thrown(Promise.resolve(handle));
      assert(error instanceof CallCancelled);
      assert.match(error.message, /^enough/);
      assert(error.cause instanceof Status);
      assert.equal(handle.state, "ended");
      assert.equal((await handle.result).stopReason, "cancelled");
      assert.equal(await policy.start(async () => 3), 3);
      // A handle that nobody awaits leaves no unhandled rejection.
      policy.start(flaky(9)).cancel();
    });

    test("a handle cancels the attempt under way", async () => {
      let signal: AbortSignal | undefined;
      const handle = new Policy().start((attempt) => {
        signal = attempt.signal;
        return never();
      });
      handle.cancel();
      assert((await handle.result).error instanceof CallCancelled);
      assert(signal?.aborted);
    });
  });
}
