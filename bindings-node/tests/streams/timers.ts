/** The timers of a stream: first item, idle, silence, the total, and the slow attempt that is joined. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AttemptTimeout, retryStream, traceOf } from "../../driver/index.js";
import { virtual } from "../../driver/testing.js";
import { QUICK, turn } from "../setup.js";
import { all, cut, HANG, Played } from "./sources.js";

export function timers(): void {
  describe("timers", () => {
    test("the first item has its time, and so has the attempt until then", async () => {
      await virtual(async (clock) => {
        const fields = { ...QUICK, maxAttempts: 1, stream: { firstItemTimeout: 3000 } } as const;
        const waiting = retryStream(new Played([[HANG]]).fn, fields).next();
        await turn();
        clock.advance(2999);
        await turn();
        clock.advance(1);
        await assert.rejects(waiting, (error: Error) => {
          assert(error instanceof AttemptTimeout);
          assert.match(error.message, /attempt 1 had no first item within 3 s/);
          assert.equal(traceOf(error)?.receipts[0]?.latency_ms, 3000);
          return true;
        });
      });
    });

    test("a stream that has begun outlives the attempt's timeout and the total", async () => {
      await virtual(async (clock) => {
        const stream = retryStream(new Played([["a", "b"]]).fn, { ...QUICK, attemptTimeout: 1000, totalTimeout: 2000 });
        await stream.next();
        clock.advance(60_000);
        assert.deepEqual(await all(stream), { items: ["b"] });
        assert.equal(stream.trace?.ended?.elapsed_ms, 60_000);
      });
    });

    test("a slow attempt is joined by another; the first with an item is the one", async () => {
      await virtual(async (clock) => {
        const source = new Played([[HANG], ["a", "b"]]);
        const signals: AbortSignal[] = [];
        const stream = retryStream(
          (attempt) => {
            signals.push(attempt.signal);
            return source.fn();
          },
          { ...QUICK, hedge: { after: 300 } },
        );
        const waiting = stream.next();
        await turn();
        clock.advance(299);
        await turn();
        assert.equal(source.attempts, 1);
        clock.advance(1);
        assert.deepEqual(await waiting, { done: false, value: "a" });
        assert.deepEqual([source.closed, signals.map((signal) => signal.aborted)], [1, [true, false]]);
        assert.deepEqual(await all(stream), { items: ["b"] });
        assert.deepEqual([source.attempts, stream.trace?.ended?.outcome], [2, "success"]);
      });
    });

    test("an attempt that has an item is joined by none", async () => {
      await virtual(async (clock) => {
        const source = new Played([["a", HANG], ["c"]]);
        const stream = retryStream(source.fn, { ...QUICK, hedge: { after: 300 } });
        await stream.next();
        const waiting = stream.next();
        clock.advance(1000);
        await turn();
        assert.equal(source.attempts, 1);
        await stream.return();
        await waiting;
        await turn();
        assert.equal(source.closed, 1);
      });
    });

    test("idle is counted while the source is waited for, and not while the consumer is slow", async () => {
      await virtual(async (clock) => {
        const stream = retryStream(new Played([["a", "b", HANG]]).fn, { ...QUICK, stream: { idleTimeout: 1000 } });
        await stream.next();
        clock.advance(60_000);
        await stream.next();
        clock.advance(60_000);
        const waiting = stream.next();
        await turn();
        clock.advance(999);
        await turn();
        clock.advance(1);
        await assert.rejects(waiting, /attempt 1 was idle for 1 s/);
        assert.equal(stream.trace?.ended?.reason, "already_delivered");
      });
    });

    test("pings are no data: the wait for it goes on", async () => {
      await virtual(async (clock) => {
        const ping = { type: "ping" };
        const source = new Played([["a", ping, "b", ping, ping, HANG]]);
        const stream = retryStream(
          async function* () {
            for await (const item of source.fn()) {
              clock.advance(item === ping ? 400 : 0);
              yield item;
            }
          },
          { ...QUICK, stream: { idleTimeout: 1000 } },
        );
        for (let i = 0; i < 5; i++) await stream.next();
        const waiting = stream.next();
        await turn();
        clock.advance(199);
        await turn();
        clock.advance(1);
        await assert.rejects(waiting, /was idle for 1 s/);
      });
    });

    test("silence is counted from the beginning", async () => {
      await virtual(async (clock) => {
        const fields = { ...QUICK, maxAttempts: 1, stream: { silenceTimeout: 500 } } as const;
        const waiting = retryStream(new Played([[HANG]]).fn, fields).next();
        await turn();
        clock.advance(500);
        await assert.rejects(waiting, /attempt 1 was silent for 0.5 s/);
      });
    });

    test("after a cut the total binds again, without the time of delivery", async () => {
      await virtual(async (clock) => {
        const fields = { ...QUICK, totalTimeout: 2000, stream: { mode: "restart" } } as const;
        let left: number[] = [];
        const source = new Played([["a", cut()], ["b"]]);
        const stream = retryStream((attempt) => {
          left = [...left, attempt.timeout];
          return source.fn();
        }, fields);
        await stream.next();
        clock.advance(60_000);
        await all(stream);
        assert.deepEqual(left, [2000, 2000]);
      });
    });
  });
}
