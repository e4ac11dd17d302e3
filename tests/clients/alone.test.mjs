/** Where the engine does not load, wrapped clients and models go on as they were: one attempt, their own errors. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { ChatOpenAI } from "@langchain/openai";
import { generateText } from "ai";
import OpenAI from "openai";

import { ROOT } from "../js/paths.mjs";
import { gatewayForTests, TEXT, thrown } from "./setup.mjs";

console.warn = () => {};
const { engineFault, setEngine, wrap } = await import(`${ROOT}bindings-node/dist/node/index.js`);
const { resilient: language } = await import(`${ROOT}bindings-node/dist/integrations/ai-sdk.js`);
const { resilient } = await import(`${ROOT}bindings-node/dist/integrations/langchain.js`);
setEngine(() => {
  throw new Error("no engine here");
});
const gateway = await gatewayForTests();
const defaultHeaders = { "x-drill-id": "alone" };
const messages = [{ role: "user", content: "#[ok]" }];
const failing = [{ role: "user", content: "#[500]" }];

test("openai", async () => {
  const client = wrap(new OpenAI({ apiKey: "none", baseURL: `${gateway.url}/v1`, defaultHeaders }), "interactive");
  assert.ok(engineFault());
  const { choices } = await client.chat.completions.create({ model: "gpt-5", messages });
  assert.equal(choices[0].message.content, TEXT);
  let text = "";
  const stream = await client.chat.completions.create({ model: "gpt-5", messages, stream: true });
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
  assert.equal(text, TEXT);
  const error = await thrown(client.chat.completions.create({ model: "gpt-5", messages: failing }));
  assert.ok(error instanceof OpenAI.InternalServerError);
  assert.equal(await gateway.count("alone"), 3);
});

test("anthropic", async () => {
  const client = wrap(new Anthropic({ apiKey: "none", baseURL: gateway.url }), { maxAttempts: 3 });
  const asked = { model: "claude-5", max_tokens: 5 };
  assert.equal((await client.messages.create({ ...asked, messages })).content[0].text, TEXT);
  assert.ok((await thrown(client.messages.create({ ...asked, messages: failing }))) instanceof Anthropic.APIError);
});

test("the AI SDK and LangChain", async () => {
  const model = createOpenAI({ apiKey: "none", baseURL: `${gateway.url}/v1` }).chat("gpt-5");
  assert.equal((await generateText({ model: language([model, model], "llm"), prompt: "#[ok]" })).text, TEXT);
  const chat = new ChatOpenAI({ apiKey: "none", model: "gpt-5", configuration: { baseURL: `${gateway.url}/v1` } });
  assert.equal((await resilient(chat, "interactive").invoke("#[ok]")).content, TEXT);
  let text = "";
  for await (const chunk of await resilient(chat, "interactive").stream("#[ok]")) text += chunk.content;
  assert.equal(text, TEXT);
});
