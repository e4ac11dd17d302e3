/** What a call tells, and what it asks: the sink, the listener, functions of the user's own. */
import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { faults, Policy } from "../../driver/index.js";
import { virtual } from "../../driver/testing.js";
import { flaky, QUICK } from "../setup.js";

export function reports(): void {
  describe("reports", () => {
    test("functions of the user's own decide, and never break a call", async () => {
      const policy = new Policy({ ...QUICK, retryOn: ["unknown"] });
      const plain = new Error("plain");
      const count = async (options: object): Promise<number> =>
        (await policy.bind(options).execute(flaky(9, plain))).attempts;
      const fail = (): never => {
        throw new Error("mine");
      };
      const before = faults();
      const warned = mock.method(console, "warn", () => {});
      assert.equal(await count({ retryIf: () => false }), 1);
      assert.equal(await count({ classify: () => "bad_request" }), 1);
      assert.equal(await count({ classify: () => "no such kind" }), 3);
      assert.equal(await count({ classify: fail, retryIf: fail, backoff: fail, onEvent: fail, sink: fail }), 3);
      assert.equal(await count({ retryIf: async () => false, sink: () => Promise.reject(new Error("mine")) }), 3);
      assert.equal(await count({ backoff: () => Number.NaN }), 3);
      warned.mock.restore();
      for (const role of ["classify", "retryIf", "backoff", "onEvent", "sink"]) {
        assert((faults()[role] ?? 0) > (before[role] ?? 0), role);
      }
      const waits = await virtual(async (clock) => {
        await policy
          .with({ backoff: { max: "1m" } })
          .bind({ backoff: (_, n) => n * 100 })
          .execute(flaky(9, plain));
        return clock.sleeps;
      });
      assert.deepEqual(waits, [100, 200]);
    });

    test("records go to the sink, events to the listener, in the schema of every language", async () => {
      const lines: string[] = [];
      const events: string[] = [];
      const stream = { write: (text: string) => lines.push(text) };
      const bound = new Policy(QUICK).bind({ sink: stream, onEvent: (event) => events.push(event.event), scene: "s" });
      await bound.call(flaky(1));
      assert.deepEqual(events, ["attempt_started", "attempt_failed", "will_retry", "attempt_started", "succeeded"]);
      const records = lines.map((line) => JSON.parse(line));
      assert.deepEqual(
        records.map((record) => [record.scene, record.decision]),
        [
          ["s", "retry"],
          ["s", "done"],
          ["s", "done"],
        ],
      );
      assert(lines.every((line) => line.endsWith("}\n")));
    });
  });
}
