/** LangChain's models, chains and agents under a policy, against the gateway, over one engine. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { HumanMessage } from "@langchain/core/messages";
import { StringOutputParser } from "@langchain/core/output_parsers";
import { ChatPromptTemplate } from "@langchain/core/prompts";
import { RunnableLambda } from "@langchain/core/runnables";
import { Annotation, Command, INTERRUPT, interrupt, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, createMiddleware, tool } from "langchain";
import { z } from "zod";

import { ROOT } from "../js/paths.mjs";
import { gatewayForTests, NEVER, OFTEN, QUICK, records, reprieveOn, TEXT, thrown, until } from "./setup.mjs";

export async function suite(engine) {
  const { Policy, Run, traceOf } = await reprieveOn(engine);
  const { middleware, resilient } = await import(`${ROOT}bindings-node/dist/integrations/langchain.js`);
  const gateway = await gatewayForTests();
  let drills = 0;

  const modelOf = (drill, fields = {}) =>
    new ChatOpenAI({
      apiKey: "none",
      model: "gpt-5",
      configuration: {
        baseURL: `${gateway.url}/v1`,
        defaultHeaders: { "x-drill-id": drill },
      },
      ...fields,
    });
  /** Models of the gateway, each with a drill of its own, as one. */
  const opened = (policy = QUICK, options = {}, ids = ["gpt-5"]) => {
    const names = ids.map(() => `${engine}-lc-${++drills}`);
    const models = ids.map((model, i) => modelOf(names[i], { model }));
    const counts = () => Promise.all(names.map((name) => gateway.count(name)));
    return {
      models,
      model: resilient(models.length > 1 ? models : models[0], policy, options),
      counts,
      names,
    };
  };
  const read = async (stream, of = (chunk) => chunk.content) => {
    let text = "";
    for await (const chunk of stream) text += of(chunk);
    return text;
  };

  describe(`LangChain over ${engine}`, () => {
    test("a chat model stays one, and is tried again; its own retries are off", async () => {
      const { model, models, counts } = opened();
      assert.ok(model instanceof ChatOpenAI && model instanceof BaseChatModel);
      assert.deepEqual([model.caller.maxRetries, models[0].caller.maxRetries > 0], [0, true]);
      const { content, usage_metadata: usage } = await model.invoke("#[503,429,ok]");
      assert.equal(content, TEXT);
      assert.ok(usage.total_tokens > 0);
      assert.deepEqual(await counts(), [3]);
    });

    test("what is thrown is the client's own error, with its trace; callbacks see one run", async () => {
      const { model, counts } = opened();
      const seen = [];
      const callbacks = [
        {
          handleChatModelStart: () => seen.push("start"),
          handleLLMError: () => seen.push("error"),
        },
      ];
      const error = await thrown(model.invoke("#[500]", { callbacks }));
      assert.equal(error.status, 500);
      assert.match(traceOf(error).note, /gave up after 3 attempts/);
      assert.deepEqual(seen, ["start", "error"]);
      assert.deepEqual(await counts(), [3]);
    });

    test("what is made of it is under the policy, too", async () => {
      const { model, counts } = opened();
      const add = tool(({ a }) => `${a}`, {
        name: "add",
        description: "adds",
        schema: z.object({ a: z.number() }),
      });
      assert.equal((await model.bindTools([add]).invoke("#[503,ok]")).content, TEXT);
      assert.equal((await model.withConfig({ tags: ["x"] }).invoke("#[502,ok]")).content, TEXT);
      const chain = ChatPromptTemplate.fromMessages([["user", "{text}"]])
        .pipe(model)
        .pipe(new StringOutputParser());
      assert.equal(await chain.invoke({ text: "#[504,ok]" }), TEXT);
      assert.deepEqual(await chain.batch([{ text: "#[500,ok]" }, { text: "#[ok]" }]), [TEXT, TEXT]);
      assert.deepEqual(await counts(), [9]);
      const wrong = await thrown(model.withStructuredOutput(z.object({ a: z.number() })).invoke("#[429,ok]"));
      assert.ok(wrong instanceof Error);
    });

    test("the next model is asked when one is used up", async () => {
      const told = records();
      const { model, counts } = opened({ ...QUICK, maxAttempts: 2 }, { sink: told.sink }, ["gpt-5", "gpt-5-mini"]);
      await thrown(model.invoke("#[500]"));
      assert.deepEqual(await counts(), [2, 2]);
      assert.deepEqual(
        told.lines.slice(0, 4).map(({ target }) => target),
        ["gpt-5", "gpt-5", "gpt-5-mini", "gpt-5-mini"],
      );
      const named = opened(Policy.preset("llm").with(QUICK), {}, ["a", "b"]);
      await thrown(named.model.invoke("#[quota]"));
      assert.deepEqual(await named.counts(), [1, 1]);
    });

    test("a stream is tried again until its first content, alone and in a chain", async () => {
      const { model: hasty } = opened({ ...QUICK, maxAttempts: OFTEN, attemptTimeout: 400 });
      assert.equal(await read(await hasty.stream("#[sse-stall=0,ok]")), TEXT);
      const { model, counts } = opened({ ...QUICK, maxAttempts: 4 });
      assert.equal(await read(await model.stream("#[503,sse-cut=0,sse-error=0,ok]")), TEXT);
      assert.deepEqual(await counts(), [4]);
      const chain = model.pipe(new StringOutputParser());
      assert.equal(await read(await chain.stream("#[sse-cut=0,502,ok]"), (text) => text), TEXT);
      const events = [];
      for await (const { event } of model.streamEvents("#[sse-cut=0,504,ok]", {
        version: "v2",
      }))
        events.push(event);
      assert.deepEqual([events[0], events.at(-1)], ["on_chat_model_start", "on_chat_model_end"]);
      assert.deepEqual(await counts(), [10]);
    });

    test("OpenAI's responses, structured output, and a stream that was cut", async () => {
      const drill = `${engine}-lc-${++drills}`;
      const responses = resilient(modelOf(drill, { useResponsesApi: true }), QUICK);
      assert.equal((await responses.invoke("#[503,ok]")).text, TEXT);
      assert.equal(await read(await responses.stream("#[502,ok]"), (chunk) => chunk.text), TEXT);
      assert.equal(await gateway.count(drill), 4);
      const { model } = opened();
      const structured = model.withStructuredOutput(z.object({ a: z.number() }), { method: "jsonSchema" });
      assert.equal(typeof (await structured.invoke("#[500,json]")).a, "number");
      for (const cut of [model, responses]) {
        assert.match((await thrown(read(await cut.stream("#[sse-eof=2]")))).message, /without its finish frame/);
      }
    });

    test("a stream that breaks later is not repeated; one that is left ends its call", async () => {
      const told = records();
      const { model, counts } = opened(QUICK, { sink: told.sink });
      const error = await thrown(read(await model.stream("#[sse-error=2]")));
      assert.equal(traceOf(error).ended.reason, "already_delivered");
      assert.ok(told.lines[0].delivered > 0);
      for await (const _ of await model.stream("#[sse-stall=2]")) break;
      await until(() => told.lines.at(-1)?.reason === "cancelled");
      assert.deepEqual(await counts(), [2]);
    });

    test("a signal and a timeout end a call", async () => {
      const { model, counts } = opened({
        ...QUICK,
        attemptTimeout: 60,
        maxAttempts: 2,
      });
      assert.equal((await thrown(model.invoke(`#[${NEVER}]`))).name, "AttemptTimeout");
      assert.ok((await counts())[0] <= 2);
      const error = await thrown(opened().model.invoke(`#[${NEVER}]`, { signal: AbortSignal.timeout(50) }));
      assert.match(error.name, /Abort|Timeout/);
    });

    test("usage and cost are in receipts and the run, of answers and of streams", async () => {
      const told = records();
      const run = new Run({ attempts: 10 });
      const { model } = opened(QUICK, {
        sink: told.sink,
        run,
        prices: { "gpt-5": { input: 1, output: 2 } },
      });
      const { usage_metadata: usage } = await model.invoke("#[503,ok]");
      await read(await model.stream("#[ok]"));
      const receipts = told.lines.filter(({ outcome, record }) => outcome === "success" && !record);
      assert.equal(receipts.length, 2);
      for (const receipt of receipts) {
        assert.equal(receipt.output_tokens, usage.output_tokens);
        assert.equal(Math.round(receipt.cost * 1e9), receipt.input_tokens * 1e3 + receipt.output_tokens * 2e3);
      }
      assert.ok(run.report().cost_nanos.used > 0);
    });

    test("messages are repaired", async () => {
      const repair = { context_length_exceeded: () => [new HumanMessage("#[ok]")] };
      const { model, counts } = opened({ ...QUICK, maxAttempts: 1 }, { repair });
      assert.equal((await model.invoke("#[context]")).content, TEXT);
      assert.equal(await read(await model.stream("#[context]")), TEXT);
      assert.deepEqual(await counts(), [4]);
    });

    test("any runnable", async () => {
      const drill = `${engine}-lc-${++drills}`;
      const chain = ChatPromptTemplate.fromMessages([["user", "{text}"]])
        .pipe(modelOf(drill))
        .pipe(new StringOutputParser());
      const wrapped = resilient(chain, QUICK);
      assert.equal(await wrapped.invoke({ text: "#[503,500,ok]" }), TEXT);
      assert.deepEqual(await wrapped.batch([{ text: "#[502,ok]" }, { text: "#[ok]" }]), [TEXT, TEXT]);
      assert.equal(await read(await wrapped.stream({ text: "#[504,sse-cut=0,ok]" }), (text) => text), TEXT);
      assert.equal(await gateway.count(drill), 9);
      let calls = 0;
      const flaky = RunnableLambda.from(() => {
        calls += 1;
        if (calls < 3) throw Object.assign(new Error("busy"), { status: 503 });
        return calls;
      });
      assert.equal(
        await resilient(flaky, QUICK)
          .pipe((n) => n + 1)
          .invoke(0),
        4,
      );
    });

    test("an agent's model is asked under the policy, and its tools under theirs", async () => {
      const drill = `${engine}-lc-${++drills}`;
      let calls = 0;
      const flaky = tool(
        () => {
          calls += 1;
          if (calls < 3) throw Object.assign(new Error("busy"), { status: 503 });
          return "sunny";
        },
        { name: "weather", description: "The weather", schema: z.object({}) },
      );
      const hooks = middleware(QUICK, { tools: QUICK });
      const agent = createAgent({
        model: modelOf(drill),
        tools: [flaky],
        middleware: [createMiddleware(hooks)],
      });
      const messages = [{ role: "user", content: "#[503,tool=1,500,ok]" }];
      const answer = await agent.invoke({ messages });
      assert.equal(answer.messages.at(-1).content, TEXT);
      assert.equal(answer.messages.at(-2).content, "sunny");
      assert.equal(calls, 3);
      assert.equal(await gateway.count(drill), 4);
      const asked = { messages: [{ role: "user", content: "#[sse-cut=0,502,ok]" }] };
      const parts = await agent.stream(asked, { streamMode: "messages" });
      assert.equal(await read(parts, ([chunk]) => chunk.content), TEXT);
    });

    test("a graph's interrupt leaves its node, whatever the policy retries", async () => {
      let calls = 0;
      const policy = new Policy({ ...QUICK, retryOn: ["unknown"] });
      const ask = policy.wrap(() => {
        calls += 1;
        return { said: interrupt("who?") };
      });
      const graph = new StateGraph(Annotation.Root({ said: Annotation() }))
        .addNode("ask", ask)
        .addEdge(START, "ask")
        .compile({ checkpointer: new MemorySaver() });
      const thread = { configurable: { thread_id: "1" } };
      const waiting = await graph.invoke({}, thread);
      assert.deepEqual([waiting[INTERRUPT][0].value, calls], ["who?", 1]);
      assert.deepEqual([await graph.invoke(new Command({ resume: "me" }), thread), calls], [{ said: "me" }, 2]);
    });

    test("bad input says what to do", () => {
      const { models } = opened();
      assert.throws(() => resilient([]), /models: an empty list/);
      const bound = resilient(models).bindTools([]);
      for (const twice of [resilient(models), bound]) {
        assert.throws(() => resilient([...models, twice]), /models\[1\]: one that is under a policy already/);
      }
      assert.throws(
        () => resilient("openai:gpt-5"),
        /runnables\[0\]: the name openai:gpt-5.*chat model or another runnable/,
      );
      assert.throws(() => resilient({ invoke: () => 1 }), /runnables\[0\]/);
      const [retrying] = models.map((one) => one.withRetry());
      for (const again of [retrying, retrying.pipe(new StringOutputParser())]) {
        assert.throws(() => resilient(again), /runnable: one with withRetry\(\) is not allowed/);
      }
      assert.throws(() => resilient(models).withRetry(), /runnable: one with withRetry\(\)/);
      assert.throws(() => resilient([...models, ...models, ...models], "llm"), /models: 3 of them/);
      assert.throws(() => resilient(models, { stream: { mode: "resume" } }), /stream.mode: "resume"/);
    });
  });
}
