/** What a wrapped client answers and throws: as the SDK does, after attempts of its own. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { QUICK, records, TEXT, thrown } from "../setup.mjs";

export function answers(place, sdk) {
  const { engine, gateway } = place;
  const { ConfigError, Policy, retry, traceOf, wrap } = place.reprieve;
  const { Class, name, opened } = sdk;
  describe("answers", () => {
    test("a new client of the same type retries, and the old one is untouched", async () => {
      const { base, client, ask, count } = opened(QUICK, {}, { maxRetries: 7 });
      assert.ok(client instanceof Class && client !== base);
      assert.deepEqual([client.maxRetries, base.maxRetries], [0, 7]);
      const answer = await ask("#[503,429,ok]");
      assert.equal(sdk.text(answer), TEXT);
      assert.equal(traceOf(answer).ended.attempts, 3);
      assert.equal(await count(), 3);
      assert.equal(Object.keys(client).includes("makeRequest"), false);
    });

    test("what is thrown is the SDK's own error, with its trace", async () => {
      const { ask, count } = opened();
      const error = await thrown(ask("#[500]"));
      assert.ok(error instanceof Class.InternalServerError);
      assert.match(traceOf(error).note, /gave up after 3 attempts.*attempts_exhausted/);
      assert.equal(await count(), 3);
    });

    test("what derives from it is wrapped, and refuses retries", async () => {
      const { client, ask, count } = opened();
      assert.equal(sdk.text(await ask("#[503,ok]", {}, client.withOptions({ timeout: 300_000 }))), TEXT);
      assert.equal(await count(), 2);
      assert.throws(() => client.withOptions({ maxRetries: 3 }), /maxRetries: 3 of a wrapped client.*maxAttempts/);
      assert.match((await thrown(ask("#[ok]", { maxRetries: 3 }))).message, /maxRetries: 3 of a wrapped client/);
      assert.equal(await count(), 2);
    });

    test("no retries are one attempt, for a request and for a client", async () => {
      const { client, ask, count } = opened();
      await thrown(ask("#[500]", { maxRetries: 0 }));
      await thrown(ask("#[500]", {}, client.withOptions({ maxRetries: 0 })));
      assert.equal(await count(), 2);
    });

    test("withResponse, asResponse and parse", async () => {
      const { ask, count } = opened();
      const { data, response, request_id: id } = await ask("#[503,ok]").withResponse();
      assert.deepEqual([sdk.text(data), response.status, typeof id], [TEXT, 200, "string"]);
      const raw = await ask("#[502,ok]").asResponse();
      assert.equal(sdk.text(await raw.json()), TEXT);
      for (const told of [data, response, raw]) assert.equal(traceOf(told).receipts.length, 2);
      const bytes = await ask("#[504,ok]", { stream: true }).asResponse();
      assert.match(await bytes.text(), /^(data|event): /);
      assert.equal(await count(), 6);
      const streamed = await ask("#[ok]", { stream: true }).withResponse();
      for await (const _ of streamed.data);
      for (const told of [streamed.data, streamed.response]) assert.equal(traceOf(told).receipts.length, 1);
    });

    test("another client is asked where the policy has another target", async () => {
      const told = records();
      const drill = `${engine}-${name}-backup`;
      const defaultHeaders = { "x-drill-id": drill };
      const backup = new Class({
        apiKey: "none",
        baseURL: sdk.base(gateway.url),
        defaultHeaders,
      });
      const policy = Policy.preset("llm").with(QUICK);
      const { ask, count } = opened(policy, {
        clients: { backup },
        sink: told.sink,
      });
      const error = await thrown(ask("#[500,503,502]"));
      assert.ok(error instanceof Class.InternalServerError);
      assert.deepEqual([await count(), await gateway.count(drill)], [3, 2]);
      assert.deepEqual(
        told.lines.slice(0, 5).map(({ target }) => target),
        ["primary", "primary", "primary", "backup", "backup"],
      );
      assert.throws(() => wrap(backup, QUICK, { clients: { backup } }), /clients.backup.*a target of the policy/);
      assert.throws(() => wrap(backup, QUICK, { clients: "backup" }), /^ConfigError: clients: backup .*an object from/);
    });

    test("a body that is read as it is sent is kept, or refused", async () => {
      const { client, count } = opened();
      const body = JSON.stringify({
        model: "m",
        max_tokens: 5,
        messages: [{ role: "user", content: "#[500,529x1,ok]" }],
      });
      const path = name === "openai" ? "/chat/completions" : "/v1/messages";
      const sent = (body) => client.post(path, { body, headers: { "content-type": "application/json" } });
      assert.equal(sdk.text(await sent(new Response(body).body)), TEXT);
      assert.equal(await count(), 3);
      async function* parts() {
        yield new Uint8Array(1 << 20);
        yield body;
      }
      const large = await thrown(sent(parts()));
      assert.match(String(large), new RegExp(`the body of POST ${path}: .*of more than 1048576 bytes, is not allowed`));
      assert.equal(await count(), 3);
    });

    test("a body that breaks while it is read, and an error under a status that says success", async () => {
      const { ask, count } = opened();
      assert.equal(sdk.text(await ask("#[cut=20,ok]")), TEXT);
      assert.equal(await count(), 2);
      let sent = 0;
      const fetch = async () => {
        sent += 1;
        return Response.json({
          error: {
            type: "server_error",
            code: "server_error",
            message: "not today",
          },
        });
      };
      const client = wrap(new Class({ apiKey: "none", fetch }), QUICK);
      const error = await thrown(sdk.create(client, { messages: [] }));
      assert.ok(error instanceof Class.APIError);
      assert.equal(traceOf(error).ended.reason, "attempts_exhausted");
      assert.equal(sent, 3);
    });

    test("layers add: a wrapped client inside of a call is not tried again by it", async () => {
      const { ask, count } = opened();
      const error = await thrown(retry(() => ask("#[500]"), QUICK));
      assert.ok(error instanceof Class.InternalServerError);
      assert.equal(await count(), 3);
    });

    test("bad input says what to do", async () => {
      const { client, base } = opened();
      assert.throws(() => wrap(client), /client that is wrapped already.*one policy is enough/);
      assert.throws(() => wrap({}), /a client of openai or @anthropic-ai\/sdk; for another, put policy.call around/);
      assert.throws(() => wrap(base, "brisk"), ConfigError);
      assert.throws(() => wrap(base, QUICK, { scnee: "x" }), /scnee/);
      assert.throws(() => wrap(base, { stream: { mode: "resume" } }), /stream.mode: "resume".*retryStream/);
      assert.throws(() => wrap(base, QUICK, { traceId: "0".repeat(32) }), /each call has one of its own/);
      assert.throws(
        () => wrap(base, QUICK, { prices: { m: { input: -1, output: 1 } } }),
        /prices.m.input: -1.*from 0 up/,
      );
      assert.throws(() => wrap(base, QUICK, { prices: { m: { input: 1 } } }), /prices.m.output: nothing/);
      assert.throws(() => wrap(base, QUICK, { idempotency: 7 }), /idempotency: 7.*name of a header/);
      const old = Object.create(base, {
        getUserAgent: { value: () => `${name}/JS 99.9.1` },
      });
      assert.throws(() => wrap(old), /99\.9\.1 is not allowed.*with this one, put policy.call around/);
    });
  });
}
