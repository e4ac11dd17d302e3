/** `check`: answers that are none, whole streams too; and what is refused of all three. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BadOutput, ConfigError, Failure, RetryExhausted, retry, retryStream, traceOf } from "../../driver/index.js";
import { QUICK, Status } from "../setup.js";
import { type Asked, all, kinds, mend, quick, script } from "./script.js";

export function checks(): void {
  describe("checks", () => {
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
