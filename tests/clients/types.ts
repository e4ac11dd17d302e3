/** What is wrapped keeps its type. This is compiled against the packages, and never run. */

import { createOpenAI, openai } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { ChatOpenAI } from "@langchain/openai";
import { generateText, streamText } from "ai";
import { createAgent, createMiddleware } from "langchain";
import OpenAI, { AzureOpenAI } from "openai";
import { Policy, Run, wrap } from "reprieve";
import { resilient as model } from "reprieve/ai-sdk";
import { middleware, resilient } from "reprieve/langchain";

export const plain: OpenAI = wrap(new OpenAI());
export const azure: AzureOpenAI = wrap(new AzureOpenAI(), "interactive");
export const claude: Anthropic = wrap(new Anthropic(), Policy.preset("llm").bind({ scene: "s" }), {
  prices: {
    "claude-5": { input: 3, output: 15, cachedInput: 0.3, currency: "USD" },
  },
  idempotency: true,
  clients: { backup: new Anthropic() },
  run: new Run({ attempts: 3 }),
});
export const text: Promise<string | null | undefined> = plain.chat.completions
  .create({ model: "gpt-5", messages: [] })
  .then(({ choices }) => choices[0]?.message.content);

// @ts-expect-error: there is no such field
wrap(new OpenAI(), { maxAttempt: 3 });
// @ts-expect-error: a client of another SDK
wrap(new OpenAI(), "llm", { clients: { backup: new Anthropic() } });
// @ts-expect-error: each call has one of its own
wrap(new OpenAI(), "llm", { traceId: "0" });

const language = model([openai("gpt-5"), createOpenAI().chat("gpt-5-mini")], "interactive", { idempotency: true });
export const generated = generateText({ model: language, prompt: "" });
export const streamed = streamText({ model: language, prompt: "" });

const chat: ChatOpenAI = resilient([new ChatOpenAI({ model: "a" }), new ChatOpenAI({ model: "b" })], "llm");
export const agent = createAgent({
  model: chat,
  tools: [],
  middleware: [createMiddleware(middleware("interactive", { tools: "tool" }))],
});
