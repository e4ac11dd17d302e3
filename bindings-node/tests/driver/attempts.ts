/** What an attempt is told, and which attempts a call makes. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, test } from "node:test";
import { type Attempt, AttemptTimeout, Policy, retry, traceOf } from "../../driver/index.js";
import { metered } from "../../driver/inner.js";
import { flaky, never, QUICK, Status, sleep, thrown } from "../setup.js";

export function attempts(): void {
  describe("attempts", () => {
    test("retries until it succeeds, and tells each attempt what it is", async () => {
      const seen: unknown[] = [];
      const value = await retry(
        async (attempt) => {
          seen.push([
            attempt.number,
            attempt.target,
            attempt.isLast,
            attempt.timeout,
            attempt.traceId,
            attempt.idempotencyKey,
          ]);
          if (attempt.number < 3) throw new Status(500);
          return "done";
        },
        { ...QUICK, attemptTimeout: 1000 },
      );
      assert.equal(value, "done");
      const [[, , , , traceId, key] = []] = seen as any[][];
      assert.match(traceId, /^[0-9a-f]{32}$/);
      assert.match(key, /^[0-9a-f]{32}$/);
      assert.deepEqual(
        seen,
        [1, 2, 3].map((n) => [n, "primary", n === 3, 1000, traceId, key]),
      );
    });

    test("a second attempt that follows at once is of the same call, and recorded if it fails as well", async () => {
      const seen: Attempt[] = [];
      const asked: unknown[] = [];
      const policy = new Policy({ ...QUICK, maxAttempts: 2 }).bind({ retryIf: (error) => void asked.push(error) });
      const failed = new Status(500);
      const error = await thrown(
        policy.call((attempt) => {
          seen.push(attempt);
          throw seen.length === 1 ? new Status(503) : failed;
        }),
      );
      assert.equal(error, failed);
      const [one, two] = seen as [Attempt, Attempt];
      assert.deepEqual([two.number, two.target, two.isLast], [2, "primary", true]);
      assert.equal(one.isLast, false);
      assert.deepEqual([one.traceId, one.idempotencyKey], [two.traceId, two.idempotencyKey]);
      assert.equal(traceOf(error)?.traceId, one.traceId);
      assert.deepEqual(
        traceOf(error)?.receipts.map(({ attempt, kind, decision }) => [attempt, kind, decision]),
        [
          [1, "overloaded", "retry"],
          [2, "server_error", "stop"],
        ],
      );
      assert.equal(asked.length, 2, "each failure is asked about once");
    });

    test("an attempt is the last one where the call may make no more, whatever targets are left", async () => {
      const last: [number, boolean][] = [];
      const policy = new Policy({ ...QUICK, maxAttemptsTotal: 2, targets: [{ id: "a" }, { id: "b" }] });
      for (const bound of [policy, policy.bind({ onEvent: () => {} }), policy.with({ maxAttemptsTotal: 1 })]) {
        await thrown(
          bound.call(({ number, isLast }) => {
            last.push([number, isLast]);
            throw new Status(500);
          }),
        );
      }
      assert.deepEqual(
        last,
        [false, true, false, true, true].map((isLast, at) => [(at % 2) + 1, isLast]),
      );
    });

    test("what a client hides is looked for in every attempt, at once as it may follow", async () => {
      const asked: number[] = [];
      const hidden = ({ number }: Attempt): string => {
        asked.push(number);
        return `{"record":"hidden","attempt":${number}}`;
      };
      const looking = metered(new Policy(QUICK), { usage: () => undefined, hidden }, undefined);
      const error = await thrown(looking.call(() => Promise.reject(new Status(500))));
      assert.deepEqual(asked, [1, 2, 3]);
      assert.deepEqual(
        traceOf(error)?.lines.flatMap((line) => (line.includes("hidden") ? [JSON.parse(line).attempt] : [])),
        [1, 2, 3],
      );
    });

    test("a second attempt that follows at once ends at its timeout and with its call as any other", async () => {
      const late = new Policy({ ...QUICK, attemptTimeout: 20 });
      let why: unknown;
      const third = await late.call((attempt) => {
        if (attempt.number === 1) throw new Status(500);
        if (attempt.number === 3) return attempt.number;
        attempt.signal.onabort = () => {
          why = attempt.signal.reason;
        };
        return never();
      });
      assert.equal(third, 3);
      assert(why instanceof AttemptTimeout);

      const caller = new AbortController();
      const cancelled = thrown(
        retry(({ number }) => (number === 1 ? Promise.reject(new Status(500)) : never()), QUICK, {
          signal: caller.signal,
        }),
      );
      await sleep(5);
      caller.abort("enough");
      assert.equal(await cancelled, "enough");
      assert.equal(getEventListeners(caller.signal, "abort").length, 0);
    });

    test("no second attempt follows where the signal has aborted meanwhile", async () => {
      const caller = new AbortController();
      let calls = 0;
      const failing = (): never => {
        calls += 1;
        caller.abort("enough");
        throw new Status(500);
      };
      assert.equal(await thrown(retry(failing, QUICK, { signal: caller.signal })), "enough");
      assert.equal(calls, 1);
    });

    test("a chain falls back, with a function for each target", async () => {
      const policy = new Policy({ ...QUICK, maxAttempts: 1, targets: [{ id: "a" }, { id: "b" }] });
      const bound = policy.bind({ targets: { b: (attempt) => `from ${attempt.target}` } });
      assert.equal(await bound.call(flaky(9) as never), "from b");
    });
  });
}
