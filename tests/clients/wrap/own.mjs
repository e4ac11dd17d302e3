/** What one SDK has and the other has not. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { QUICK, TEXT } from "../setup.mjs";

export function own(place) {
  const { engine, gateway, OpenAI, AzureOpenAI, Anthropic } = place;
  const { traceOf, wrap } = place.reprieve;
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
        endpoint: gateway.url,
        defaultHeaders: { "x-drill-id": drill },
      });
      const client = wrap(azure, QUICK);
      assert.ok(client instanceof AzureOpenAI);
      // The SDK's own copies forget both.
      for (const one of [client, client.withOptions({ timeout: 9000 })]) {
        assert.deepEqual([one.apiVersion, one.deploymentName], ["2024-10-21", "mine"]);
        const answer = await one.chat.completions.create({
          model: "",
          messages: [{ role: "user", content: "#[503,ok]" }],
        });
        assert.equal(answer.choices[0].message.content, TEXT);
      }
    });

    test("embeddings have a cost: what they read is all", async () => {
      const prices = { small: { input: 20, output: 0 } };
      const usage = { prompt_tokens: 3, total_tokens: 3 };
      const fetch = async () => Response.json({ data: [], model: "small", usage });
      const client = wrap(new OpenAI({ apiKey: "none", fetch }), QUICK, { prices });
      const { ended } = traceOf(
        await client.embeddings.create({ model: "small", input: "hi", encoding_format: "float" }),
      );
      assert.deepEqual([ended.input_tokens, ended.output_tokens, ended.cost], [3, 0, 0.00006]);
    });

    test("anthropic's runner of tools streams", async () => {
      const drill = `${engine}-runner`;
      const client = wrap(
        new Anthropic({ apiKey: "none", baseURL: gateway.url, defaultHeaders: { "x-drill-id": drill } }),
        QUICK,
      );
      const runner = client.beta.messages.toolRunner({
        model: "claude-5",
        max_tokens: 50,
        messages: [{ role: "user", content: "#[503,ok]" }],
        tools: [],
        stream: true,
      });
      let text = "";
      for await (const stream of runner) for await (const { delta } of stream) text += delta?.text ?? "";
      assert.deepEqual([text, await gateway.count(drill)], [TEXT, 2]);
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
