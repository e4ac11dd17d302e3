/** The Vercel AI SDK on models under a policy, against the gateway, over one engine. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { APICallError, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

import { ROOT } from "../js/paths.mjs";
import { gatewayForTests, OFTEN, QUICK, records, reprieveOn, TEXT, thrown, until } from "./setup.mjs";

export async function suite(engine) {
  const { Policy, Run, traceOf, wrapFetch } = await reprieveOn(engine);
  const { resilient } = await import(`${ROOT}bindings-node/dist/integrations/ai-sdk.js`);
  const gateway = await gatewayForTests();
  let drills = 0;

  /** Models of the gateway, each with a drill of its own, as one. */
  const opened = (policy = QUICK, options = {}, ids = ["gpt-5"]) => {
    const names = ids.map(() => `${engine}-ai-${++drills}`);
    const models = ids.map((id, i) =>
      createOpenAI({
        apiKey: "none",
        baseURL: `${gateway.url}/v1`,
        headers: { "x-drill-id": names[i] },
      }).chat(id),
    );
    const counts = () => Promise.all(names.map((name) => gateway.count(name)));
    return {
      model: resilient(models.length > 1 ? models : models[0], policy, options),
      models,
      counts,
      names,
    };
  };
  const read = async (stream) => {
    let text = "";
    for await (const delta of stream) text += delta;
    return text;
  };

  describe(`AI SDK over ${engine}`, () => {
    test("generateText is tried again, and is answered as by the model itself", async () => {
      const { model, counts } = opened();
      assert.deepEqual([model.specificationVersion, model.modelId], ["v3", "gpt-5"]);
      const { text, finishReason, usage } = await generateText({
        model,
        prompt: "#[503,429,ok]",
      });
      assert.deepEqual([text, finishReason], [TEXT, "stop"]);
      assert.ok(usage.totalTokens > 0);
      assert.deepEqual(await counts(), [3]);
    });

    test("the SDK's own retries add nothing, and its error is its own", async () => {
      const { model, counts } = opened();
      const error = await thrown(generateText({ model, prompt: "#[500]" }));
      assert.ok(APICallError.isInstance(error));
      assert.equal(error.isRetryable, false);
      assert.match(traceOf(error).note, /gave up after 3 attempts/);
      assert.deepEqual(await counts(), [3]);
      const told = [];
      await streamText({
        model,
        prompt: "#[500]",
        onError: (event) => told.push(event.error),
      }).consumeStream();
      assert.ok(APICallError.isInstance(told[0]));
      assert.deepEqual(await counts(), [6]);
    });

    test("a fetch of its provider that is under a policy as well adds nothing", async () => {
      const drill = `${engine}-ai-${++drills}`;
      const inner = createOpenAI({
        apiKey: "none",
        baseURL: `${gateway.url}/v1`,
        headers: { "x-drill-id": drill },
        fetch: wrapFetch(fetch, QUICK, { methods: ["POST"] }),
      });
      const error = await thrown(generateText({ model: resilient(inner.chat("gpt-5"), QUICK), prompt: "#[500]" }));
      assert.deepEqual([error.statusCode, traceOf(error).receipts.length], [500, 1]);
      assert.equal(await gateway.count(drill), 3);
    });

    test("the next model is asked when one is used up", async () => {
      const told = records();
      const { model, counts } = opened({ ...QUICK, maxAttempts: 2 }, { sink: told.sink }, ["gpt-5", "gpt-5-mini"]);
      assert.equal(
        (await generateText({ model, prompt: "#[500x2,ok]" }).catch((error) => error)).name,
        "AI_APICallError",
      );
      assert.deepEqual(await counts(), [2, 2]);
      assert.deepEqual(
        told.lines.slice(0, 4).map(({ target }) => target),
        ["gpt-5", "gpt-5", "gpt-5-mini", "gpt-5-mini"],
      );
      const named = opened(Policy.preset("llm").with(QUICK), { sink: told.sink }, ["a", "a"]);
      assert.equal(
        (
          await generateText({
            model: named.model,
            prompt: "#[quota,ok]",
          }).catch((error) => error)
        ).name,
        "AI_APICallError",
      );
      assert.deepEqual(await named.counts(), [1, 1]);
    });

    test("a stream is tried again until its first content", async () => {
      const { model, counts } = opened({ ...QUICK, maxAttempts: 4 });
      const { textStream, finishReason } = streamText({ model, prompt: "#[503,sse-cut=0,sse-error=0,ok]" });
      assert.equal(await read(textStream), TEXT);
      assert.equal(await finishReason, "stop");
      assert.deepEqual(await counts(), [4]);
      const { model: hasty } = opened({ ...QUICK, maxAttempts: OFTEN, attemptTimeout: 300 });
      assert.equal(await read(streamText({ model: hasty, prompt: "#[sse-stall=0,ok]" }).textStream), TEXT);
    });

    test("a stream that breaks later tells its error, and is not repeated", async () => {
      for (const marker of ["sse-error=2", "sse-cut=2"]) {
        const told = records();
        const { model, counts } = opened(QUICK, { sink: told.sink });
        const errors = [];
        const { textStream } = streamText({
          model,
          prompt: `#[${marker}]`,
          onError: ({ error }) => errors.push(error),
        });
        assert.ok(TEXT.startsWith(await read(textStream)));
        assert.equal(errors.length, 1);
        assert.ok(told.lines[0].delivered > 0);
        assert.equal(told.lines.at(-1).reason, "already_delivered");
        assert.deepEqual(await counts(), [1]);
      }
    });

    test("the consumer of a stream stops it", async () => {
      const told = records();
      const { model } = opened(QUICK, { sink: told.sink });
      const controller = new AbortController();
      const { fullStream } = streamText({ model, prompt: "#[sse-stall=2]", abortSignal: controller.signal });
      const types = [];
      for await (const { type } of fullStream) {
        types.push(type);
        if (type === "text-delta") controller.abort();
      }
      assert.equal(types.at(-1), "abort");
      await until(() => told.lines.at(-1)?.record);
      assert.equal(told.lines.at(-1).reason, "cancelled");
    });

    test("usage and cost are in receipts and the run, of answers and of streams", async () => {
      const told = records();
      const run = new Run({ attempts: 10 });
      const { model } = opened(QUICK, {
        sink: told.sink,
        run,
        prices: { "gpt-5": { input: 1, output: 2 } },
      });
      const { usage } = await generateText({ model, prompt: "#[503,ok]" });
      await streamText({ model, prompt: "#[ok]" }).consumeStream();
      const receipts = told.lines.filter(({ outcome, record }) => outcome === "success" && !record);
      for (const receipt of receipts) {
        assert.equal(receipt.output_tokens, usage.outputTokens);
        assert.equal(Math.round(receipt.cost * 1e9), receipt.input_tokens * 1e3 + receipt.output_tokens * 2e3);
      }
      assert.equal(receipts.length, 2);
      assert.equal(run.report().attempts.used, 3);
      assert.ok(run.report().cost_nanos.used > 0);
    });

    test("tools are called as ever", async () => {
      const { model, counts } = opened();
      const called = [];
      const tools = {
        weather: tool({
          description: "The weather",
          inputSchema: z.object({ city: z.string().optional() }),
          execute: async (input) => {
            called.push(input);
            return "sunny";
          },
        }),
      };
      const prompt = "#[503,tool=1,502,ok]";
      const { text, steps } = await generateText({ model, tools, stopWhen: stepCountIs(3), prompt });
      assert.deepEqual([text, steps.length, called.length], [TEXT, 2, 1]);
      assert.deepEqual(await counts(), [4]);
      const { textStream } = streamText({ model, tools, stopWhen: stepCountIs(3), prompt: "#[429,tool=1,503,ok]" });
      assert.equal(await read(textStream), TEXT);
      assert.equal(called.length, 2);
      assert.deepEqual(await counts(), [8]);
    });

    test("an idempotency key is sent where it is asked for", async () => {
      const { model, names } = opened(QUICK, { idempotency: true });
      await generateText({ model, prompt: "#[503,ok]" });
      const keys = (await gateway.requests(names[0])).map((request) => request["idempotency-key"]);
      assert.equal(keys.length, 2);
      assert.match(keys[0], /^[0-9a-f]{32}$/);
      assert.equal(keys[0], keys[1]);
    });

    test("a URL is left to the models where all of them read it", async () => {
      const [one, other] = opened(QUICK, {}, ["a", "b"]).models;
      one.supportedUrls = { "image/*": [/^https:/, /^data:/], "audio/*": [/^https:/] };
      other.supportedUrls = Promise.resolve({ "image/*": [/^https:/] });
      assert.deepEqual(await resilient([one, other]).supportedUrls, { "image/*": [/^https:/], "audio/*": [] });
      assert.equal(resilient(one).supportedUrls, one.supportedUrls);
    });

    test("options are prepared for each model", async () => {
      const prepare = (asked, target) => ({ ...asked, maxOutputTokens: target === "a" ? 1 : 2 });
      const seen = [];
      const { model } = opened(
        { ...QUICK, maxAttempts: 1 },
        { prepare, check: (answer) => seen.push(answer.request.body.max_tokens) },
        ["a", "b"],
      );
      await generateText({ model, prompt: "#[ok]" });
      await thrown(generateText({ model, prompt: "#[500]" }));
      assert.deepEqual(seen, [1]);
    });

    test("bad input says what to do", () => {
      const { models } = opened();
      assert.throws(() => resilient([]), /models: an empty list/);
      assert.throws(() => resilient([...models, resilient(models)]), /models\[1\]: one that is under a policy already/);
      assert.throws(() => resilient("openai/gpt-5"), /models\[0\]: the name openai\/gpt-5.*openai\("gpt-5"\)/);
      assert.throws(
        () => resilient([...models, ...models, ...models], "llm"),
        /models: 3 of them.*a model for each target/,
      );
      assert.throws(() => resilient(models, { stream: { mode: "restart" } }), /stream.mode: "restart"/);
      assert.throws(() => resilient(models, QUICK, { idempotency: 7 }), /idempotency: 7.*name of a header/);
      assert.throws(() => resilient(models, QUICK, { scnee: "x" }), /scnee/);
    });
  });
}
