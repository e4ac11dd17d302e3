/** `repair` and `prepare`: requests that change, and what ends a call that waits for one. */
import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import { type CallEvent, type Failure, Policy, Run, retry, traceOf } from "../../driver/index.js";
import { virtual } from "../../driver/testing.js";
import { never, QUICK, Status, turn } from "../setup.js";
import { type Asked, mend, quick, reasons, script } from "./script.js";

export function changes(): void {
  describe("changes", () => {
    test("one more attempt with a changed request", async () => {
      const seen: unknown[] = [];
      const error = new Status(401);
      const { play, requests } = script(error, "fine");
      const refresh = (request: Asked, failure: Failure): Asked => {
        seen.push(request, failure.kind, failure.error, failure.value);
        return { ...request, token: "new" };
      };
      const events: CallEvent[] = [];
      const options = { request: { model: "m" }, repair: { auth_failed: refresh }, onEvent: events.push.bind(events) };
      const result = await quick({ maxAttempts: 1 }).bind(options).execute(play);
      assert.deepEqual([result.value, reasons(result)], ["fine", ["repair", null]]);
      assert.deepEqual(requests, [{ model: "m" }, { model: "m", token: "new" }]);
      assert.deepEqual(seen, [{ model: "m" }, "auth_failed", error, undefined]);
      assert.deepEqual([events[2]?.event, events[2]?.reason, events[2]?.delay_ms], ["will_retry", "repair", 0]);
    });

    test("once for each kind, and what was repaired stays", async () => {
      const { play, requests } = script(new Status(401), new Status(404), new Status(503), new Status(401));
      const repair = {
        auth_failed: async (request: Asked) => ({ ...request, model: "a" }),
        not_found: (request: Asked) => ({ ...request, model: "b" }),
      };
      const policy = quick({ fallbackOn: [], maxAttempts: 2 });
      const result = await policy.bind({ request: { model: "m" }, repair }).execute(play);
      assert.equal(result.stopReason, "not_retryable");
      assert.deepEqual(
        requests.map((request) => (request as Asked).model),
        ["m", "a", "b", "b"],
      );
    });

    test("the answer that was refused is there to be fed back", async () => {
      const { play, requests } = script("{", '{"city": "Paris"}');
      const feedBack = (request: string[], { value, message }: Failure) => [...request, value, message];
      const options = { request: ["?"], check: JSON.parse as never, repair: { parse_error: feedBack } };
      const result = await quick({ maxAttempts: 1 }).bind(options).execute(play);
      assert.equal(result.value, '{"city": "Paris"}');
      const [, second] = requests as string[][];
      assert.deepEqual([second?.[0], second?.[1]], ["?", "{"]);
      assert.match(second?.[2] ?? "", /JSON/);
    });

    test("a run that is used up is not repaired, and no budget is charged", async () => {
      let repaired = 0;
      const repair = {
        auth_failed: () => {
          repaired += 1;
        },
      };
      const bound = quick().bind({ run: new Run({ attempts: 1 }), repair });
      const { stopReason } = await bound.execute(script(new Status(401)).play);
      assert.deepEqual([stopReason, repaired], ["run_budget_exhausted", 0]);
      const guarded = quick({
        cooldown: {},
        retryBudget: { capacity: 1, retryCost: 1 },
        breaker: { consecutiveFailures: 1 },
      });
      assert.equal(
        await guarded.bind({ repair: { auth_failed: mend } }).call(script(new Status(401), "fine").play),
        "fine",
      );
      assert.deepEqual(guarded.guards.describe(), new Policy().guards.describe());
    });

    test("no attempt with a repair left is the last", async () => {
      const seen: boolean[] = [];
      const policy = quick({ maxAttempts: 1 }).bind({ repair: { auth_failed: mend } });
      await policy.call((attempt) => {
        seen.push(attempt.isLast);
        if (attempt.number === 1) throw new Status(401);
      });
      assert.deepEqual(seen, [false, true]);
    });

    test("a repair that throws ends the call, with the attempt's error behind it", async () => {
      for (const late of [false, true]) {
        const boom = new RangeError("no token to be had");
        const error = new Status(401);
        const refresh = (): never | Promise<never> => {
          if (late) return Promise.reject(boom);
          throw boom;
        };
        const { play, requests } = script(error);
        const result = await quick()
          .bind({ repair: { auth_failed: refresh } })
          .execute(play);
        assert.deepEqual([result.error, requests.length, boom.cause], [boom, 1, error]);
        assert.deepEqual(
          [traceOf(boom), result.stopReason, result.failure?.kind],
          [result.trace, "cancelled", "auth_failed"],
        );
        assert.match(result.trace.note, /repair\.auth_failed threw this/);
        await assert.rejects(
          quick()
            .bind({ repair: { auth_failed: refresh } })
            .call(script(error).play),
          boom,
        );
      }
    });

    test("a prepare that throws ends it, too", async () => {
      const boom = new RangeError("no such model");
      for (const prepare of [
        () => {
          throw boom;
        },
        () => Promise.reject(boom),
      ]) {
        const { play, requests } = script("fine");
        const result = await quick().bind({ prepare }).execute(play);
        assert.deepEqual([result.error, requests.length], [boom, 0]);
        assert.match(result.trace.note, /prepare threw this/);
      }
    });

    test("the deadline, a handle and the caller's signal end an async repair", async () => {
      mock.timers.enable({ apis: ["setTimeout"] });
      try {
        // Attempts of any length: what they leave is no whole number of milliseconds, and records round.
        for (let tenths = 0; tenths < 20; tenths++) {
          const refused = (): never => {
            for (const began = performance.now(); performance.now() < began + tenths / 10; );
            throw new Status(401);
          };
          const ends = quick({ totalTimeout: 300_000 })
            .bind({ repair: { auth_failed: never } })
            .execute(refused);
          await turn();
          mock.timers.tick(300_001);
          const late = await ends;
          assert.deepEqual([late.stopReason, (late.error as Status).status], ["deadline_exceeded", 401]);
        }
      } finally {
        mock.timers.reset();
      }
      let begins = (): void => {};
      const begun = new Promise<void>((resolve) => {
        begins = resolve;
      });
      const waits = {
        auth_failed: () => {
          begins();
          return new Promise(() => {});
        },
      };
      const handle = quick()
        .bind({ repair: waits })
        .start(script(new Status(401)).play);
      await begun;
      handle.cancel("enough");
      await assert.rejects(async () => handle, /enough/);
      const controller = new AbortController();
      const aborted = quick()
        .bind({ repair: { auth_failed: () => new Promise(() => setTimeout(() => controller.abort("gone"))) } })
        .bind({ signal: controller.signal })
        .call(script(new Status(401)).play);
      await assert.rejects(aborted, (reason) => reason === "gone");
    });

    test("what never settles has its end on a virtual clock as well", async () => {
      await virtual(async (clock) => {
        const policy = quick({ attemptTimeout: 1000, totalTimeout: 5000, maxAttempts: 1 });
        for (const [ends, options] of [
          ["deadline_exceeded", { repair: { auth_failed: never } }],
          ["attempts_exhausted", { prepare: never }],
          ["attempts_exhausted", { check: never }],
        ] as const) {
          const fails = options && "repair" in options;
          const result = policy.bind(options).execute(script(fails ? new Status(401) : "fine").play);
          await turn();
          clock.advance(fails ? 5001 : 1000);
          assert.equal((await result).stopReason, ends);
        }
      });
    });

    test("each attempt is prepared anew, for its target", async () => {
      const { play, requests } = script(new Status(503), new Status(503), new Status(401), "fine");
      const options = {
        request: { n: 0 },
        prepare: (request: { n: number }, target: string) => ({ ...request, n: request.n + 1, target }),
        repair: { auth_failed: () => ({ n: 10 }) },
      };
      const policy = quick({ targets: [{ id: "a", maxAttempts: 2 }, { id: "b" }] });
      assert.equal(await policy.bind(options).call(play), "fine");
      assert.deepEqual(requests, [
        { n: 1, target: "a" },
        { n: 1, target: "a" },
        { n: 1, target: "b" },
        { n: 11, target: "b" },
      ]);
    });

    test("a wrapped function's first argument is the request", async () => {
      const seen: unknown[] = [];
      class Client {
        readonly key = "k";
        async ask(request: Asked, times: number): Promise<string> {
          seen.push([this.key, request, times]);
          if (seen.length === 1) throw new Status(401);
          return request.model;
        }
      }
      const client = new Client();
      const ask = quick()
        .bind({ repair: { auth_failed: mend } })
        .wrap(client.ask);
      assert.equal(await ask.call(client, { model: "m" }, 2), "mended");
      assert.deepEqual(seen, [
        ["k", { model: "m" }, 2],
        ["k", { model: "mended" }, 2],
      ]);
      const plain = quick().wrap(async (request: Asked, more: string) => [request.model, more]);
      assert.deepEqual(await plain({ model: "m" }, "x"), ["m", "x"]);
      const prepared = quick().bind({ prepare: (request: Asked, target) => ({ ...request, model: target }) });
      assert.equal(await prepared.wrap((request: Asked) => request.model)({ model: "m" }), "primary");
    });

    test("the happy path shows the request", async () => {
      assert.equal(await retry((attempt) => attempt.request, QUICK, { request: 7 }), 7);
    });
  });
}
