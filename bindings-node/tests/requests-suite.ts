/** `check`, `prepare` and `repair`, over one engine: answers that are none, and requests that change. */
import assert from "node:assert/strict";
import { describe, mock, test } from "node:test";
import type { Engine } from "../driver/engine.js";
import {
  type Attempt,
  BadOutput,
  type CallEvent,
  ConfigError,
  Failure,
  Policy,
  type PolicyFields,
  type Result,
  RetryExhausted,
  Run,
  retry,
  retryStream,
  setEngine,
  traceOf,
} from "../driver/index.js";
import { never, QUICK, Status, turn } from "./setup.js";

interface Asked {
  readonly model: string;
  readonly token?: string;
}

/** Plays a list, and keeps what it was asked: errors are thrown, the last step again and again. */
function script(...steps: unknown[]) {
  const requests: unknown[] = [];
  const play = async (attempt: Attempt): Promise<unknown> => {
    requests.push(attempt.request);
    const step = steps.length > 1 ? steps.shift() : steps[0];
    if (step instanceof Error) throw step;
    return step;
  };
  return { play, requests };
}

const quick = (fields: PolicyFields = {}): Policy => new Policy({ ...QUICK, ...fields });
const kinds = (result: Result<unknown>): unknown[] => result.trace.receipts.map((receipt) => receipt.kind);
const reasons = (result: Result<unknown>): unknown[] => result.trace.receipts.map((receipt) => receipt.reason);
const mend = (request: Asked): Asked => ({ ...request, model: "mended" });

export function suite(name: string, engine: Engine): void {
  setEngine(() => engine);

  describe(`requests over ${name}`, () => {
    test("anything but a refusal is fine", async () => {
      for (const said of [undefined, null, true, 0, "", { city: "Paris" }, Promise.resolve(true)].slice(0, 4)) {
        const result = await quick()
          .bind({ check: () => said })
          .execute(script("fine").play);
        assert.equal(result.value, "fine");
      }
      assert.equal(await retry(script("fine").play, QUICK, { check: async () => ({ parsed: true }) }), "fine");
    });

    test("a refusal is a failure, and keeps the answer", async () => {
      const verdicts = [
        [false, "invalid_output"],
        ["truncated", "truncated"],
        [new Failure({ kind: "parse_error" }), "parse_error"],
      ] as const;
      for (const [said, kind] of verdicts) {
        for (const check of [() => said, async () => said]) {
          const result = await quick({ maxAttempts: 2 }).bind({ check }).execute(script("bad").play);
          assert.deepEqual([...new Set(kinds(result))], [kind]);
          assert(result.error instanceof BadOutput);
          assert.equal(result.error.name, "BadOutput");
          assert.deepEqual([result.error.value, result.error.failure?.kind, result.value], ["bad", kind, "bad"]);
          assert.equal(result.error.stopReason, result.stopReason);
          assert.equal(result.error.attempts, result.attempts);
          assert.equal(traceOf(result.error), result.trace);
        }
      }
    });

    test("a refused answer is tried again", async () => {
      const { play, requests } = script("bad", "good");
      const result = await quick()
        .bind({ check: (value) => value === "good" })
        .execute(play);
      assert.deepEqual([result.value, requests.length, kinds(result)], ["good", 2, ["invalid_output", null]]);
    });

    test("what JSON.parse throws is a parse error, and what says nothing is about the answer", async () => {
      const parsed = await quick({ maxAttempts: 1 })
        .bind({ check: JSON.parse as never })
        .execute(script("{").play);
      assert.deepEqual([kinds(parsed), parsed.value], [["parse_error"], "{"]);
      assert(parsed.error instanceof SyntaxError);
      const thrown = await quick({ maxAttempts: 1 })
        .bind({
          check: () => {
            throw new RangeError("no city");
          },
        })
        .execute(script("?").play);
      assert.deepEqual(kinds(thrown), ["invalid_output"]);
      const own = await quick()
        .bind({ check: assert.fail })
        .execute(script(new RangeError("not checked")).play);
      assert.deepEqual([kinds(own), own.value], [["unknown"], undefined]);
    });

    test("an unknown kind ends the call", async () => {
      const { play, requests } = script("bad");
      const result = await quick()
        .bind({ check: () => "rubbish" })
        .execute(play);
      assert.match(String(result.error), /check answered "rubbish"/);
      assert.equal(requests.length, 1);
      assert.match(result.trace.note, /check threw this/);
    });

    test("the value of an earlier attempt is not the last one's", async () => {
      const result = await quick({ maxAttempts: 2 })
        .bind({ check: () => false })
        .execute(script("bad", new Status(503)).play);
      assert.deepEqual([result.value, (result.error as Status).status], [undefined, 503]);
    });

    test("a check takes of its attempt's time, and a refused answer has used what it used", async () => {
      const slow = await quick({ attemptTimeout: 10, maxAttempts: 1 })
        .bind({ check: () => new Promise(() => {}) })
        .execute(script("slow to judge").play);
      assert.deepEqual([kinds(slow), slow.value], [["timeout"], "slow to judge"]);
      const answer = { usage: { prompt_tokens: 5, completion_tokens: 7 } };
      const refused = await quick({ maxAttempts: 2 })
        .bind({ check: () => false })
        .execute(script(answer).play);
      assert.deepEqual(refused.usage, { inputTokens: 10, outputTokens: 14 });
    });

    test("wrapped, the refusal is the cause", async () => {
      const given = retry(
        script("bad").play,
        { ...QUICK, maxAttempts: 1 },
        { check: () => false, onGiveUp: "wrapped" },
      );
      await assert.rejects(given, (error) => {
        assert(error instanceof RetryExhausted);
        assert(error.cause instanceof BadOutput);
        return error.cause.value === "bad";
      });
    });

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
        const ends = quick({ totalTimeout: 300_000 })
          .bind({ repair: { auth_failed: never } })
          .execute(script(new Status(401)).play);
        await turn();
        mock.timers.tick(300_001);
        const late = await ends;
        assert.deepEqual([late.stopReason, (late.error as Status).status], ["deadline_exceeded", 401]);
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

    test("a stream's request is repaired, and its whole answer checked", async () => {
      const seen: unknown[] = [];
      async function* words(request: unknown): AsyncGenerator<string> {
        seen.push(request);
        if (seen.length === 1) throw new Status(401);
        yield* seen.length === 2 ? ["a", "b"] : ["a", "b", "c"];
      }
      const stream = retryStream(
        (attempt) => words(attempt.request),
        { ...QUICK, stream: { mode: "buffered" } },
        {
          request: { model: "m" },
          prepare: (request: Asked, target) => ({ ...request, target }),
          repair: { auth_failed: mend },
          check: (items: string[]) => items.length === 3,
        },
      );
      assert.deepEqual(await all(stream), ["a", "b", "c"]);
      assert.deepEqual(seen[1], { model: "mended", target: "primary" });
      const delivered = retryStream(() => ["a"], QUICK, { check: () => false });
      await assert.rejects(all(delivered), (error) => {
        assert(error instanceof BadOutput);
        assert.deepEqual([error.value, error.stopReason], [["a"], "already_delivered"]);
        return true;
      });
    });

    test("what is refused", () => {
      const refused: [object, string, RegExp][] = [
        [{ repair: { rubbish: mend } }, "repair.rubbish", /kind/],
        [{ repair: { cancelled: mend } }, "repair.cancelled", /kind/],
        [{ repair: { auth_failed: "no function" } }, "repair", /function/],
        [{ check: "no function" }, "check", /function/],
        [{ prepare: {} }, "prepare", /function/],
      ];
      for (const [options, field, allowed] of refused) {
        assert.throws(
          () => quick().bind(options),
          (error) => {
            assert(error instanceof ConfigError);
            assert.match(error.allowed, allowed);
            return error.field === field;
          },
        );
      }
      const bound = quick().bind({ check: () => false, repair: { auth_failed: mend } });
      assert.deepEqual(bound.bind({ check: null, repair: null })._options.check, undefined);
    });
  });
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}
