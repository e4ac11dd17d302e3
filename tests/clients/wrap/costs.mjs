/** What a wrapped client is asked and tells: keys, changed requests, tokens, cost, and what is sent behind our back. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { QUICK, records, TEXT, thrown } from "../setup.mjs";
import { PRICES } from "./sdks.mjs";

export function costs(place, sdk) {
  const { engine, gateway } = place;
  const { Policy, Run, wrap } = place.reprieve;
  const { Class, name, opened } = sdk;
  describe("requests and records", () => {
    test("tokens and cost are in receipts and the run; without a price the cost is unknown", async () => {
      const told = records();
      const run = new Run({ attempts: 10, cost: 1 });
      const { ask } = opened(QUICK, { prices: PRICES, sink: told.sink, run });
      const { usage } = await ask("#[429,ok]");
      const [read, written] = [
        usage.prompt_tokens ?? usage.input_tokens,
        usage.completion_tokens ?? usage.output_tokens,
      ];
      const { input, output, currency = "USD" } = PRICES[sdk.model];
      const receipt = told.lines.at(1);
      assert.deepEqual([receipt.input_tokens, receipt.output_tokens], [read, written]);
      assert.equal(Math.round(receipt.cost * 1e9), Math.round((read * input + written * output) * 1e3));
      assert.equal(receipt.currency, currency);
      assert.equal(run.report().cost_nanos.used, Math.round(receipt.cost * 1e9));
      assert.match(
        told.lines.at(-1).client,
        new RegExp(`${name}.*: maxRetries 2 -> 0, timeout 600 s -> the attempt's$`),
      );
      const others = records();
      await opened(QUICK, {
        prices: { other: { input: 1, output: 1 } },
        sink: others.sink,
      }).ask("#[ok]");
      assert.deepEqual([others.lines[0].input_tokens, others.lines[0].cost], [read, null]);
    });

    test("an idempotency key is sent where it is asked for, one for all attempts", async () => {
      const { ask, drill } = opened(QUICK, { idempotency: true });
      await ask("#[503,503,ok]");
      await ask("#[502,ok]");
      const keys = (await gateway.requests(drill)).map((request) => request["idempotency-key"]);
      assert.equal(keys.length, 5);
      assert.equal(new Set(keys).size, 2);
      const without = opened();
      await without.ask("#[ok]");
      assert.deepEqual(
        (await gateway.requests(without.drill)).map((request) => request["idempotency-key"]),
        [null],
      );
    });

    test("a request is prepared for its target, and repaired; an answer is checked", async () => {
      const told = records();
      const policy = new Policy({ ...QUICK, maxAttempts: 1, targets: [{ id: "a" }, { id: "b" }] });
      const prices = { other: { input: 1, output: 1 } };
      const prepare = (body, target) => (target === "b" ? { ...body, model: "other" } : undefined);
      const { ask } = opened(policy, { prepare, prices, sink: told.sink });
      assert.equal((await ask("#[500,ok]")).model, "other");
      assert.deepEqual(
        told.lines.slice(0, 2).map(({ target, cost }) => [target, cost !== null]),
        [
          ["a", false],
          ["b", true],
        ],
      );
      const shorter = {
        context_length_exceeded: (body) => ({ ...body, messages: [{ role: "user", content: "#[ok]" }] }),
      };
      const mended = opened({ ...QUICK, maxAttempts: 1 }, { repair: shorter });
      assert.equal(sdk.text(await mended.ask("#[context]")), TEXT);
      const picky = opened(QUICK, { check: (answer) => sdk.text(answer) === "something else" });
      assert.match((await thrown(picky.ask("#[ok]"))).message, /check refused/);
      assert.equal(await picky.count(), 3);
    });

    test("a client that sends more by itself is found out", async (t) => {
      const warn = t.mock.method(console, "warn", () => {});
      const told = records();
      const drill = `${engine}-${name}-hidden`;
      // A subclass whose transport tries again, as people write them.
      class Stubborn extends Class {
        async fetchWithTimeout(...request) {
          const response = await super.fetchWithTimeout(...request);
          return response.ok ? response : super.fetchWithTimeout(...request);
        }
      }
      const stubborn = new Stubborn({
        apiKey: "none",
        baseURL: sdk.base(gateway.url),
        defaultHeaders: { "x-drill-id": drill },
      });
      const client = wrap(stubborn, QUICK, { sink: told.sink });
      await thrown(
        sdk.create(client, {
          messages: [{ role: "user", content: "#[500]" }],
        }),
      );
      assert.equal(await gateway.count(drill), 6);
      const hidden = told.lines.filter(({ record }) => record === "hidden_retries");
      assert.deepEqual(
        hidden.map(({ attempt, retries }) => [attempt, retries]),
        [
          [1, 1],
          [2, 1],
          [3, 1],
        ],
      );
      assert.equal(warn.mock.callCount(), 1);
      assert.match(warn.mock.calls[0].arguments[0], /sent 1 more of a request by itself/);
    });
  });
}
