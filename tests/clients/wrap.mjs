/** Wrapped clients of `openai` and `@anthropic-ai/sdk` against the gateway, over one engine. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { gatewayForTests, NEVER, OFTEN, QUICK, records, reprieveOn, thrown, until } from "./setup.mjs";

const TEXT = "The gateway answers: all is well, 世界é";

/** Collects garbage now. */
setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");

const PRICES = {
  "gpt-5": { input: 1, output: 2 },
  "claude-5": { input: 3, output: 15, currency: "EUR" },
};

/** Both SDKs, asked alike. */
const asked = ({ OpenAI, Anthropic }) => ({
  openai: {
    Class: OpenAI,
    model: "gpt-5",
    base: (url) => `${url}/v1`,
    create: (client, body, options) => client.chat.completions.create({ model: "gpt-5", ...body }, options),
    helper: (client, body) => client.chat.completions.stream({ model: "gpt-5", ...body }).finalContent(),
    text: (answer) => answer.choices[0].message.content,
    delta: (chunk) => chunk.choices[0]?.delta.content,
  },
  anthropic: {
    Class: Anthropic,
    model: "claude-5",
    base: (url) => url,
    create: (client, body, options) => client.messages.create({ model: "claude-5", max_tokens: 50, ...body }, options),
    helper: (client, body) => client.messages.stream({ model: "claude-5", max_tokens: 50, ...body }).finalText(),
    text: (answer) => answer.content[0].text,
    delta: (event) => event.delta?.text,
  },
});

/** The packages are the current ones, or other versions. */
export async function suite(engine, { openai, anthropic } = {}) {
  const { default: OpenAI, AzureOpenAI } = openai ?? (await import("openai"));
  const { default: Anthropic } = anthropic ?? (await import("@anthropic-ai/sdk"));
  const SDKS = asked({ OpenAI, Anthropic });
  const reprieve = await reprieveOn(engine);
  const { ConfigError, Policy, Run, retry, traceOf, wrap } = reprieve;
  const gateway = await gatewayForTests();
  let drills = 0;

  for (const [name, sdk] of Object.entries(SDKS)) {
    const { Class } = sdk;
    /** A client of its own drill, wrapped, and how to ask it. */
    const opened = (policy = QUICK, options = {}, clientOptions = {}) => {
      const drill = `${engine}-${name}-${++drills}`;
      const defaultHeaders = { "x-drill-id": drill };
      const base = new Class({
        apiKey: "none",
        baseURL: sdk.base(gateway.url),
        defaultHeaders,
        ...clientOptions,
      });
      const client = wrap(base, policy, options);
      const ask = (content, { stream, ...given } = {}, of = client) =>
        sdk.create(of, { messages: [{ role: "user", content }], ...(stream && { stream }) }, given);
      return { base, client, ask, drill, count: () => gateway.count(drill) };
    };
    const read = async (stream) => {
      let text = "";
      for await (const chunk of stream) text += sdk.delta(chunk) ?? "";
      return text;
    };

    describe(`${name} over ${engine}`, () => {
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

      test("a timeout is the SDK's own, and so is an abort of the caller's", async () => {
        const { ask, count } = opened({
          ...QUICK,
          attemptTimeout: 60,
          maxAttempts: 2,
        });
        const late = await thrown(ask(`#[${NEVER}]`));
        assert.ok(late instanceof Class.APIConnectionTimeoutError);
        assert.equal(late.cause.name, "AttemptTimeout");
        assert.equal(traceOf(late).receipts.length, 2);
        assert.ok((await count()) <= 2);
        const controller = new AbortController();
        setTimeout(() => controller.abort(), 20);
        const aborted = await thrown(ask(`#[${NEVER}]`, { signal: controller.signal }));
        assert.ok(aborted instanceof Class.APIUserAbortError);
      });

      test("a timeout that was chosen for the client or a request binds an attempt", async () => {
        for (const of of [(client) => [{}, client.withOptions({ timeout: 60 })], () => [{ timeout: 60 }]]) {
          const { ask, client, drill } = opened({ ...QUICK, maxAttempts: OFTEN });
          assert.equal(sdk.text(await ask(`#[${NEVER},ok]`, ...of(client))), TEXT);
          const [first, ...others] = (await gateway.requests(drill)).map(({ played }) => played);
          assert.deepEqual([first, [...new Set(others)]], [NEVER, ["ok"]]);
        }
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
        const bytes = await ask("#[504,ok]", { stream: true }).asResponse();
        assert.match(await bytes.text(), /^(data|event): /);
        assert.equal(await count(), 6);
      });

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

      test("a stream is tried again until its first content", async () => {
        const { client, ask, count } = opened({ ...QUICK, maxAttempts: 4 });
        const stream = await ask("#[503,sse-cut=0,sse-error=0,ok]", { stream: true });
        assert.ok(stream.controller instanceof AbortController);
        assert.equal(await read(stream), TEXT);
        assert.equal(traceOf(stream).ended.attempts, 4);
        assert.equal(await count(), 4);
        const messages = [{ role: "user", content: "#[sse-cut=0,503,ok]" }];
        assert.equal(await sdk.helper(client, { messages }), TEXT);
        assert.equal(await count(), 7);
        const hasty = opened({ ...QUICK, maxAttempts: OFTEN, attemptTimeout: 300 });
        assert.equal(await read(await hasty.ask("#[sse-stall=0,ok]", { stream: true })), TEXT);
      });

      test("a stream that breaks later is not repeated; what was delivered is recorded", async () => {
        const told = records();
        const { ask, count } = opened(QUICK, { sink: told.sink });
        const stream = await ask("#[sse-error=2]", { stream: true });
        const error = await thrown(read(stream));
        assert.ok(error instanceof Class.APIError);
        assert.equal(traceOf(error).ended.reason, "already_delivered");
        assert.ok(told.lines[0].delivered > 0);
        assert.equal(await count(), 1);
      });

      test("a stream that ends without its finish frame is an error", async () => {
        const { ask, count } = opened({ ...QUICK, attemptTimeout: 300_000 });
        const error = await thrown(ask("#[empty]", { stream: true }));
        assert.ok(error instanceof Class.APIError);
        assert.match(error.message, /nothing in it/);
        assert.equal(await count(), 3);
      });

      test("the consumer of a stream stops it: by leaving, by its controller, by a signal", async () => {
        const told = records();
        const { ask } = opened(QUICK, { sink: told.sink });
        for await (const _ of await ask("#[sse-stall=2]", { stream: true })) break;
        const stream = await ask("#[sse-stall=2]", { stream: true });
        for await (const _ of stream) stream.controller.abort();
        const options = { stream: true, signal: AbortSignal.timeout(60) };
        const aborted = await thrown(ask("#[sse-stall=2]", options).then(read));
        assert.ok(aborted instanceof Class.APIUserAbortError);
        const ends = () => told.lines.filter(({ record }) => record === "call_ended").map(({ reason }) => reason);
        await until(() => ends().length === 3);
        assert.deepEqual(ends(), ["cancelled", "cancelled", "cancelled"]);
      });

      test("a stream that nobody holds any more ends its call", async () => {
        const told = records();
        const { ask } = opened(QUICK, { sink: told.sink });
        const begin = async () => (await ask("#[sse-stall=2]", { stream: true }))[Symbol.asyncIterator]().next();
        assert.equal((await begin()).done, false);
        for (let i = 0; i < 100 && told.lines.length === 0; i++) {
          gc();
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        assert.equal(told.lines.at(-1)?.reason, "cancelled");
      });

      test("a stream's usage is priced, and it can be split", async () => {
        const told = records();
        const { client } = opened(QUICK, { sink: told.sink, prices: PRICES });
        const body = {
          messages: [{ role: "user", content: "#[ok]" }],
          stream: true,
        };
        if (name === "openai") body.stream_options = { include_usage: true };
        const [one, other] = (await sdk.create(client, body)).tee();
        assert.deepEqual(await Promise.all([read(one), read(other)]), [TEXT, TEXT]);
        assert.ok(told.lines[0].output_tokens > 0 && told.lines[0].cost > 0);
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
        assert.throws(
          () => wrap(backup, QUICK, { clients: "backup" }),
          /^ConfigError: clients: backup .*an object from/,
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
        assert.match(
          String(large),
          new RegExp(`the body of POST ${path}: .*of more than 1048576 bytes, is not allowed`),
        );
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

      test("a helper that is aborted ends its call", async () => {
        const told = records();
        const { client } = opened(QUICK, { sink: told.sink });
        const messages = [{ role: "user", content: "#[sse-stall=2]" }];
        const body = { model: sdk.model, max_tokens: 50, messages };
        const helper = name === "openai" ? client.chat.completions.stream(body) : client.messages.stream(body);
        helper.once(name === "openai" ? "content" : "text", () => helper.abort());
        assert.ok((await thrown(helper.done())) instanceof Class.APIUserAbortError);
        await until(() => told.lines.at(-1)?.record);
        assert.equal(told.lines.at(-1).reason, "cancelled");
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

  describe(`one SDK's own, over ${engine}`, () => {
    test("openai's responses, and its helpers that read an answer", async () => {
      const drill = `${engine}-responses`;
      const client = wrap(
        new OpenAI({
          apiKey: "none",
          baseURL: `${gateway.url}/v1`,
          defaultHeaders: { "x-drill-id": drill },
        }),
        QUICK,
      );
      const { output_text: text } = await client.responses.create({
        model: "gpt-5",
        input: "#[503,ok]",
      });
      assert.equal(text, TEXT);
      const parsed = await client.chat.completions.parse({
        model: "gpt-5",
        messages: [{ role: "user", content: "#[502,ok]" }],
      });
      assert.equal(parsed.choices[0].message.content, TEXT);
      assert.equal(traceOf(parsed).ended.attempts, 2);
      assert.equal(await gateway.count(drill), 4);
    });

    test("AzureOpenAI keeps what it is", async () => {
      const drill = `${engine}-azure`;
      const azure = new AzureOpenAI({
        apiKey: "none",
        apiVersion: "2024-10-21",
        deployment: "mine",
        baseURL: `${gateway.url}/v1`,
        defaultHeaders: { "x-drill-id": drill },
      });
      const client = wrap(azure, QUICK);
      assert.ok(client instanceof AzureOpenAI);
      assert.deepEqual([client.apiVersion, client.deploymentName], ["2024-10-21", "mine"]);
    });

    test("pages are calls of their own, with the options of the caller", async () => {
      const asked = [];
      const pages = {
        "": { data: [{ id: "a" }], has_more: true },
        a: { data: [{ id: "b" }], has_more: false },
      };
      const fetch = async (url, { signal }) => {
        asked.push([new URL(url).search, signal.aborted]);
        if (asked.length % 2) return new Response("{}", { status: 503 });
        return Response.json(pages[new URL(url).searchParams.get("after") ?? ""]);
      };
      const client = wrap(new OpenAI({ apiKey: "none", fetch }), QUICK);
      const ids = [];
      for await (const { id } of client.files.list()) ids.push(id);
      assert.deepEqual(ids, ["a", "b"]);
      assert.deepEqual(asked, [
        ["", false],
        ["", false],
        ["?after=a", false],
        ["?after=a", false],
      ]);
    });

    test("bytes are the caller's to read, and results of a batch are lines", async () => {
      let sent = 0;
      const lines = [{ custom_id: "a" }, { custom_id: "b" }].map((line) => `${JSON.stringify(line)}\n`).join("");
      const fetch = async (url) => {
        sent += 1;
        if (sent % 2) return new Response("{}", { status: 503 });
        const batch = { id: "x", results_url: "http://127.0.0.1:1/results" };
        return `${url}`.endsWith("/results") ? new Response(lines) : Response.json(batch);
      };
      const client = wrap(new Anthropic({ apiKey: "none", fetch, baseURL: "http://127.0.0.1:1" }), QUICK);
      const ids = [];
      for await (const { custom_id: id } of await client.messages.batches.results("x")) ids.push(id);
      assert.deepEqual([ids, sent], [["a", "b"], 4]);
      const other = wrap(
        new OpenAI({
          apiKey: "none",
          fetch: async () => new Response("bytes"),
        }),
        QUICK,
      );
      assert.equal(await (await other.files.content("f")).text(), "bytes");
    });

    test("anthropic refreshes a token that was refused, within the attempt", async () => {
      let made = 0;
      const credentials = async () => ({
        token: `t${++made}`,
        expiresAt: Math.floor(Date.now() / 1000) + 3600,
      });
      const seen = [];
      const fetch = async (_url, { headers }) => {
        seen.push(headers.get("authorization"));
        if (seen.length === 1) return Response.json({ error: { type: "authentication_error" } }, { status: 401 });
        return Response.json({
          content: [{ type: "text", text: "in" }],
          usage: { input_tokens: 1, output_tokens: 1 },
        });
      };
      const client = wrap(new Anthropic({ credentials, fetch, baseURL: "http://127.0.0.1:1" }), QUICK);
      const answer = await client.messages.create({
        model: "m",
        max_tokens: 5,
        messages: [{ role: "user", content: "hi" }],
      });
      assert.equal(answer.content[0].text, "in");
      assert.deepEqual(seen, ["Bearer t1", "Bearer t2"]);
    });

    test("what takes too long without streaming is refused as before", () => {
      const client = wrap(new Anthropic({ apiKey: "none", baseURL: gateway.url }), QUICK);
      const asked = {
        model: "m",
        max_tokens: 500_000,
        messages: [{ role: "user", content: "hi" }],
      };
      assert.throws(() => client.messages.create(asked), /Streaming is required/);
    });
  });
}
