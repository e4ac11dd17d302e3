/** Attempts beside each other, over both engines: who wins, what becomes of the others, and that nothing is left. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { describe, test } from "node:test";
import {
  type Attempt,
  AttemptTimeout,
  type Bound,
  CallCancelled,
  ConfigError,
  Policy,
  type PolicyFields,
  Run,
  setEngine,
  traceOf,
} from "../driver/index.js";
import { virtual } from "../driver/testing.js";
import { engines } from "./engines.js";
import { QUICK, turn } from "./setup.js";

function hedging(fields: PolicyFields = {}): Policy {
  return new Policy({ ...QUICK, hedge: { after: 300 }, ...fields });
}

/** A function whose attempts end when they are told to, or when their signal aborts. */
class Slow {
  readonly made = new Map<number, Attempt>();
  readonly left = new Map<number, unknown>();
  private readonly ends = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();

  readonly fn = (attempt: Attempt): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const { number, signal } = attempt;
      this.made.set(number, attempt);
      this.ends.set(number, { resolve, reject });
      signal.addEventListener("abort", () => {
        this.left.set(number, signal.reason);
        reject(signal.reason);
      });
    });

  get started(): number[] {
    return [...this.made.keys()];
  }

  answer(number: number, value: unknown): void {
    this.ends.get(number)?.resolve(value);
  }

  fail(number: number, error: unknown): void {
    this.ends.get(number)?.reject(error);
  }
}

async function shown(error: unknown): Promise<unknown[]> {
  return (traceOf(error)?.receipts ?? []).map((r) => [r.attempt, r.outcome, r.decision]);
}

for (const [name, engine] of Object.entries(engines)) {
  describe(`hedging over ${name}`, () => {
    const each = (what: string, body: (slow: Slow, pass: (ms: number) => Promise<void>) => Promise<void>): void => {
      test(what, async () => {
        setEngine(() => engine);
        await virtual(async (clock) => {
          await body(new Slow(), async (ms) => {
            clock.advance(ms);
            await turn();
          });
        });
      });
    };

    each("the hedge wins, and the slow attempt's signal aborts", async (slow, pass) => {
      const done = hedging().execute(slow.fn);
      await pass(299);
      assert.deepEqual(slow.started, [1]);
      await pass(1);
      assert.deepEqual(slow.started, [1, 2]);
      slow.answer(2, "fast");
      const result = await done;
      assert.equal(result.value, "fast");
      assert.equal(result.attempts, 2);
      assert(slow.left.get(1) instanceof CallCancelled);
      assert.equal(slow.made.get(2)?.signal.aborted, false);
      assert.deepEqual(
        result.trace.receipts.map((r) => [r.attempt, r.outcome, r.decision]),
        [
          [1, "cancelled", "superseded"],
          [2, "success", "done"],
        ],
      );
    });

    each("the one that was joined may still win", async (slow, pass) => {
      const done = hedging().call(slow.fn);
      await pass(300);
      slow.answer(1, "first");
      assert.equal(await done, "first");
      assert.deepEqual([...slow.left.keys()], [2]);
    });

    each("what is fast is sent once, and leaves no timer", async (slow, pass) => {
      const done = hedging().call(slow.fn);
      await pass(10);
      slow.answer(1, "fast");
      assert.equal(await done, "fast");
      await pass(1000);
      assert.deepEqual(slow.started, [1]);
      assert.equal(slow.left.size, 0);
    });

    each("no more than max join, each after the latest", async (slow, pass) => {
      const done = hedging({ hedge: { after: 300, max: 2 } }).call(slow.fn);
      await pass(300);
      await pass(299);
      assert.deepEqual(slow.started, [1, 2]);
      await pass(1);
      await pass(5000);
      assert.deepEqual(slow.started, [1, 2, 3]);
      slow.answer(2, "second");
      assert.equal(await done, "second");
      assert.deepEqual([...slow.left.keys()].sort(), [1, 3]);
    });

    each("a failure waits for its sibling", async (slow, pass) => {
      const done = hedging().call(slow.fn);
      await pass(300);
      slow.fail(2, new TypeError("fetch failed"));
      await turn();
      slow.answer(1, "first");
      assert.equal(await done, "first");
    });

    each("the last failure is thrown as it is", async (slow, pass) => {
      const errors = [new Error("first"), new Error("second")];
      const done = hedging({ maxAttempts: 1 }).call(slow.fn);
      await pass(300);
      slow.fail(1, errors[0]);
      await turn();
      slow.fail(2, errors[1]);
      await assert.rejects(done, (error) => error === errors[1]);
      assert.deepEqual(await shown(errors[1]), [
        [1, "failure", "pending"],
        [2, "failure", "stop"],
      ]);
    });

    each("every attempt has its own timeout", async (slow, pass) => {
      const done = hedging({ attemptTimeout: 1000, maxAttempts: 1 }).call(slow.fn);
      const failed = assert.rejects(done, (error) => error instanceof AttemptTimeout && error.attempts === 2);
      await pass(300);
      await pass(700);
      assert(slow.left.get(1) instanceof AttemptTimeout);
      assert.equal(slow.left.has(2), false);
      await pass(300);
      assert(slow.left.get(2) instanceof AttemptTimeout);
      await failed;
    });

    each("a handle cancels all", async (slow, pass) => {
      const handle = hedging().start(slow.fn);
      await pass(300);
      handle.cancel("enough");
      await assert.rejects(async () => await handle, CallCancelled);
      assert.deepEqual([...slow.left.keys()].sort(), [1, 2]);
      assert.equal(handle.state, "ended");
    });

    each("the caller's signal aborts all, and keeps no listener", async (slow, pass) => {
      const controller = new AbortController();
      const reason = new Error("the user left");
      const done = hedging().bind({ signal: controller.signal }).call(slow.fn);
      await pass(300);
      controller.abort(reason);
      await assert.rejects(done, (error) => error === reason);
      assert.deepEqual([...slow.left.keys()].sort(), [1, 2]);
      assert.equal(getEventListeners(controller.signal, "abort").length, 0);
    });

    each("a run that ends cancels all, and counts each", async (slow, pass) => {
      const run = new Run({ attempts: 5 });
      const done = hedging().bind({ run }).call(slow.fn);
      await pass(300);
      run.cancel("enough");
      await assert.rejects(done, CallCancelled);
      assert.deepEqual([...slow.left.keys()].sort(), [1, 2]);
      assert.deepEqual((run.report() as any).attempts, { used: 2, in_flight: 0, limit: 5 });
    });

    each("no listener is kept on the caller's signal", async (slow, pass) => {
      const { signal } = new AbortController();
      const done = hedging().bind({ signal }).call(slow.fn);
      await pass(300);
      slow.answer(2, "fast");
      await done;
      assert.equal(getEventListeners(signal, "abort").length, 0);
    });

    each("an empty budget never fails the first attempt", async (slow, pass) => {
      const done = hedging({ retryBudget: { capacity: 1 } }).execute(slow.fn);
      await pass(300);
      await pass(5000);
      slow.answer(1, "late");
      const result = await done;
      assert.equal(result.value, "late");
      assert.deepEqual(
        result.trace.receipts.map((r) => [r.attempt, r.decision, r.reason]),
        [
          [null, "pending", "retry_budget_exhausted"],
          [1, "done", null],
        ],
      );
    });

    each("a hedge runs in the context of its call, whoever's timer woke it", async (_, pass) => {
      const local = new AsyncLocalStorage<string>();
      const seen: [string | undefined, number][] = [];
      const call = (policy: Bound, who: string): Promise<unknown> =>
        local.run(who, () =>
          policy.call((attempt) => {
            seen.push([local.getStore(), attempt.number]);
            return attempt.number === 2 ? who : new Promise(() => {});
          }),
        );
      const policy = hedging();
      const both = Promise.all([call(policy, "one"), call(policy, "other")]);
      await pass(300);
      assert.deepEqual(await both, ["one", "other"]);
      assert.deepEqual(seen, [
        ["one", 1],
        ["other", 1],
        ["one", 2],
        ["other", 2],
      ]);
    });

    each("events say that it is a hedge", async (slow, pass) => {
      const events: unknown[] = [];
      const done = hedging()
        .bind({ onEvent: (event) => events.push([event.event, event.attempt, event.reason]) })
        .call(slow.fn);
      await pass(300);
      slow.answer(2, "fast");
      await done;
      assert.deepEqual(events, [
        ["attempt_started", 1, null],
        ["attempt_started", 2, "hedge"],
        ["succeeded", 2, null],
      ]);
    });

    test("a function that throws at once is tried again, as without hedging", async () => {
      setEngine(() => engine);
      let calls = 0;
      const value = await hedging().call(() => {
        calls += 1;
        if (calls === 1) throw new TypeError("fetch failed");
        return calls;
      });
      assert.equal(value, 2);
    });

    test("what is left of a loser is nobody's: no rejection goes unhandled", async () => {
      setEngine(() => engine);
      const unhandled: unknown[] = [];
      const note = (reason: unknown): number => unhandled.push(reason);
      process.on("unhandledRejection", note);
      try {
        const policy = hedging({ hedge: { after: 1 } });
        let reject: (error: unknown) => void = () => {};
        const value = await policy.call(({ number }) =>
          number === 2
            ? "fast"
            : new Promise((_, no) => {
                reject = no;
              }),
        );
        assert.equal(value, "fast");
        reject(new Error("too late"));
        await turn();
        await turn();
        assert.deepEqual(unhandled, []);
      } finally {
        process.off("unhandledRejection", note);
      }
    });

    test("beside side effects it is refused", () => {
      setEngine(() => engine);
      assert.throws(
        () => hedging({ sideEffects: "unsafe" }),
        (error) => error instanceof ConfigError && error.field === "hedge",
      );
    });
  });
}
