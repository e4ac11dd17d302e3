/** Time: fake timers, a virtual clock, delays that no timer holds, a machine that is offline. */
import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { AttemptTimeout, ConfigError, Policy, retry } from "../../driver/index.js";
import { virtual } from "../../driver/testing.js";
import { flaky, never, sleep, thrown } from "../setup.js";

export function time(): void {
  describe("time", () => {
    test("the same seed waits the same", async () => {
      const waits = (): Promise<number[]> =>
        virtual(async (clock) => {
          await thrown(retry(flaky(9), { maxAttempts: 4 }, { seed: 42n }));
          return clock.sleeps;
        });
      assert.deepEqual(await waits(), await waits());
    });

    test("fake timers work, whichever are faked", async () => {
      mock.timers.enable({ apis: ["setTimeout"] });
      try {
        const timedOut = thrown(retry(never, { attemptTimeout: 60_000, maxAttempts: 1 }));
        mock.timers.tick(60_001);
        assert((await timedOut) instanceof AttemptTimeout);
        const waited = retry(flaky(1), { backoff: { base: 60_000, max: 60_000 } });
        await new Promise((resolve) => setImmediate(resolve));
        mock.timers.tick(60_001);
        assert.equal(await waited, 2);
      } finally {
        mock.timers.reset();
      }
      assert((await thrown(retry(never, { attemptTimeout: 5, maxAttempts: 1 }))) instanceof AttemptTimeout);
    });

    test("a delay beyond what a timer holds is armed again", async () => {
      const days = 30 * 86_400_000;
      mock.timers.enable({ apis: ["setTimeout"] });
      try {
        const waited = retry(flaky(1), {
          totalTimeout: "80d",
          backoff: { base: days, max: days },
          jitter: { kind: "none" },
        });
        await new Promise((resolve) => setImmediate(resolve));
        mock.timers.tick(2 ** 31);
        assert.equal(await Promise.race([waited, new Promise((resolve) => setImmediate(resolve, "waits"))]), "waits");
        mock.timers.tick(days);
        assert.equal(await waited, 2);
      } finally {
        mock.timers.reset();
      }
    });

    test("offline: a wait goes on until it is online again, or the deadline; no attempt is burnt", async () => {
      const page = new EventTarget();
      const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
      const place = { onLine: false };
      Object.defineProperty(globalThis, "navigator", { value: place, configurable: true });
      Object.assign(globalThis, {
        addEventListener: page.addEventListener.bind(page),
        removeEventListener: page.removeEventListener.bind(page),
      });
      try {
        const call = retry(flaky(1), { backoff: { base: 5 }, jitter: { kind: "none" } });
        await sleep(30);
        assert.equal(await Promise.race([call, sleep(1).then(() => "waits")]), "waits");
        place.onLine = true;
        page.dispatchEvent(new Event("online"));
        assert.equal(await call, 2);
        place.onLine = false;
        const result = await new Policy({ backoff: { base: 5 }, totalTimeout: 60 }).execute(flaky(9));
        assert.deepEqual([result.attempts, result.stopReason], [1, "deadline_exceeded"]);
      } finally {
        if (before) Object.defineProperty(globalThis, "navigator", before);
        else delete (globalThis as any).navigator;
        delete (globalThis as any).addEventListener;
        delete (globalThis as any).removeEventListener;
      }
    });

    test("a virtual clock: no real waiting, attempts capped, timeouts when it is let pass", async () => {
      const sleeps = await virtual(async (clock) => {
        const result = await new Policy({ backoff: { base: 60_000, max: 60_000 }, jitter: { kind: "none" } }).execute(
          flaky(9),
        );
        assert.equal(result.latency, 120_000);
        const cut = thrown(retry(never, { attemptTimeout: 1000, maxAttempts: 1 }));
        clock.advance(1000);
        assert((await cut) instanceof AttemptTimeout);
        return clock.sleeps;
      });
      assert.deepEqual(sleeps, [60_000, 60_000]);
      const capped = await virtual(() => new Policy({ maxAttempts: 9 }).execute(flaky(99)), { attempts: 2 });
      assert.equal(capped.attempts, 2);
      await assert.rejects(
        virtual(() => 1, { attempts: 0 }),
        ConfigError,
      );
    });
  });
}
