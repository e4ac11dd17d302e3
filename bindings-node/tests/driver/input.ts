/** Policies and options: what is refused, and how; JSON both ways; the raw machine. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Call, ConfigError, MisuseError, Policy, type PolicyFields, retry, SnapshotError } from "../../driver/index.js";
import { flaky, thrown } from "../setup.js";

export function input(): void {
  describe("input", () => {
    test("bad fields are refused by name, in the user's case", async () => {
      const refused: [unknown, RegExp][] = [
        [{ maxAttempts: 0 }, /^maxAttempts: 0 is not allowed; it takes a whole number/],
        [{ maxAttempts: Number.NaN }, /^maxAttempts: NaN /],
        [{ maxAttempts: true }, /^maxAttempts: true /],
        [{ maxAttempts: 3n }, /^maxAttempts: 3 /],
        [{ totalTimeout: -1 }, /^totalTimeout: -1 /],
        [{ totalTimeout: Number.POSITIVE_INFINITY }, /^totalTimeout: Infinity /],
        [{ backoff: { base: "1" } }, /^backoff\.base: "1" .*a number of milliseconds/],
        [{ backoff: { delays: [1, undefined] } }, /^backoff/],
        [{ kinds: { rate_limit: { maxAttempts: -1 } } }, /^kinds\.rate_limit\.maxAttempts: -1 /],
        [{ kinds: { rateLimit: {} } }, /^kinds\.rateLimit: .*rate_limit/],
        [{ targets: [{ id: "a", attemptTimeout: "x" }] }, /^targets\[0\]\.attemptTimeout: "x" /],
        [{ max_attempts: 2 }, /^max_attempts: 2 .*no such field; .*maxAttempts/],
        [{ color: 1 }, /^color: /],
        [null, /^policy: null /],
        ["tool", /^policy: "tool" /],
      ];
      for (const [fields, message] of refused) {
        assert.throws(
          () => new Policy(fields as PolicyFields),
          (error: Error) => {
            assert(error instanceof ConfigError);
            assert.equal(error.name, "ConfigError");
            assert.match(error.message, message);
            return true;
          },
        );
      }
      assert((await thrown(retry(flaky(0), { maxAttempts: -1 }))) instanceof ConfigError);
      assert((await thrown(retry("no function" as never))) instanceof ConfigError);
      assert.deepEqual(new Policy({ maxAttempts: undefined }).toJSON(), new Policy().toJSON());
    });

    test("bad options are refused by name; null takes back", async () => {
      const policy = new Policy({ targets: [{ id: "a" }] });
      const refused: [object, RegExp][] = [
        [{ seed: 1.5 }, /^seed: 1.5 /],
        [{ seed: -1n }, /^seed: -1 /],
        [{ seed: 2n ** 64n }, /^seed: /],
        [{ seed: true }, /^seed: true /],
        [{ repair: 3 }, /^repair: 3 .*an object from kind/],
        [{ traceId: "xyz" }, /^traceId: xyz .*32/],
        [{ signal: {} }, /^signal: .*an AbortSignal/],
        [{ scene: 5 }, /^scene: 5 .*string/],
        [{ onEvent: "x" }, /^onEvent: x .*function/],
        [{ targets: { b() {} } }, /^targets\.b: .*a/],
        [{ unmask: ["nothing"] }, /nothing/],
        [{ colour: 1 }, /^colour: .*the options are scene/],
      ];
      for (const [options, message] of refused)
        assert.throws(() => policy.bind(options), { name: "ConfigError", message });
      for (const seed of [0, "18446744073709551615", 2n ** 64n - 1n]) policy.bind({ seed });
      assert.equal(
        await policy
          .bind({ scene: "x", signal: undefined })
          .bind({ scene: null })
          .call(async () => 1),
        1,
      );
    });

    test("a generator function is refused where its answer would be one, and nothing would run", async () => {
      function* generator(): Generator<never> {}
      async function* asynchronous(): AsyncGenerator<never> {}
      const policy = new Policy();
      for (const fn of [generator, asynchronous, generator.bind(null)] as any[]) {
        await assert.rejects(retry(fn), /fn: the generator function .* a function: use retryStream/);
        assert.throws(() => policy.wrap(fn), /fn: the generator function/);
        for (const name of ["check", "prepare", "classify", "retryIf", "backoff", "onEvent", "sink"]) {
          const message = new RegExp(`^${name}: .*a function`, "s");
          assert.throws(() => policy.bind({ [name]: fn }), { name: "ConfigError", message });
        }
        assert.throws(() => policy.bind({ repair: { auth_failed: fn } }), /^ConfigError: repair: .* no generator/s);
        policy.bind({ targets: { primary: fn } });
      }
      await assert.rejects(retry(generator() as never), /fn: \[object Generator\] is not allowed; it takes a function/);
    });

    test("policies: presets, JSON both ways, with, forSkill", () => {
      const llm = Policy.preset("llm");
      assert.deepEqual(llm.targets, ["primary", "backup"]);
      assert.deepEqual(Policy.fromJSON(JSON.stringify(llm)).toJSON(), llm.toJSON());
      assert.deepEqual(Policy.fromJSON(llm.toJSON()).toJSON(), llm.toJSON());
      assert.equal(llm.with({ maxAttempts: 7 }).toJSON().max_attempts, 7);
      assert.deepEqual(Policy.forSkill("s", { s: { fallback_skill_id: "t" }, t: {} }).targets, ["s", "t"]);
      assert.throws(() => Policy.preset("nothing" as never), ConfigError);
      assert.throws(() => Policy.fromJSON("{"), ConfigError);
    });

    test("the raw machine", () => {
      const call = new Call(new Policy({ jitter: { kind: "none" } }), 7);
      assert.equal(call.begin(0).kind, "attempt");
      const action = call.onOutcome(1e6, 1, { failure: { kind: "timeout" } });
      assert.deepEqual([action.kind, action.after, action.afterNs, action.reason], ["retry", 500, 5e8, "timeout"]);
      assert.equal(call.state, "waiting");
      assert.throws(() => call.onOutcome(2e6, 9, { success: {} }), MisuseError);
      assert.throws(() => call.onOutcome(2e6, 1, { nothing: 1 } as never), ConfigError);
      assert.throws(() => Call.restore("{}", 0, 0), SnapshotError);
      assert.equal(call.records[0]?.kind, "timeout");
    });
  });
}
