/**
 * A complete client of a chat model: a primary and a backup, results in place of exceptions, one log line for each call.
 *
 *     LLM_BASE_URL=https://... LLM_API_KEY=... LLM_MODEL=gpt-5 node llm-client.mjs "What is a retry budget?"
 *
 * `LLM_BACKUP_BASE_URL`, `LLM_BACKUP_API_KEY`, `LLM_BACKUP_MODEL` name a backup; what they leave out is the primary's.
 */
import { pathToFileURL } from "node:url";

import OpenAI from "openai";
import { Policy } from "reprieve";

export class LlmClient {
  /** A target is `{ baseURL, apiKey, model }`; `prices` are for a million tokens, by the name of the model. */
  constructor(targets, { policy = Policy.preset("llm"), prices = {}, log = console.error } = {}) {
    const ids = Object.keys(targets);
    this.policy = ids.length < policy.targets.length ? policy.with({ targets: ids.map((id) => ({ id })) }) : policy;
    this.targets = targets;
    this.clients = Object.fromEntries(ids.map((id) => [id, new OpenAI({ ...targets[id], maxRetries: 0 })]));
    this.prices = prices;
    this.log = log;
  }

  static fromEnv(options = {}, env = process.env) {
    const names = Object.entries({ baseURL: "BASE_URL", apiKey: "API_KEY", model: "MODEL" });
    const given = (prefix) =>
      Object.fromEntries(names.flatMap(([name, end]) => (env[prefix + end] ? [[name, env[prefix + end]]] : [])));
    const [primary, backup] = [given("LLM_"), given("LLM_BACKUP_")];
    if (!primary.model) throw new Error("LLM_MODEL is not set: it names the model to ask, such as gpt-5");
    const hasBackup = Object.keys(backup).length > 0;
    return new LlmClient({ primary, ...(hasBackup && { backup: { ...primary, ...backup } }) }, options);
  }

  /** Asks; does not throw what goes wrong with the model. `signal` ends the call. */
  async chat(content, { scene = "chat", signal } = {}) {
    const result = await this.policy.bind({ scene, signal }).execute((attempt) => {
      const asked = { model: this.targets[attempt.target].model, messages: [{ role: "user", content }] };
      return this.clients[attempt.target].chat.completions.create(asked, { signal: attempt.signal });
    });
    const { ok, value, error, attempts, latency, usage, stopReason: reason, failure } = result;
    const model = this.targets[result.trace.ended?.target]?.model;
    const told = { ok, model, attempts, latency, usage, cost: costOf(usage, this.prices[model]), reason };
    this.log(JSON.stringify({ scene, ...told, kind: failure?.kind, trace: result.trace.traceId }));
    return { ...told, text: value?.choices[0]?.message.content ?? "", error };
  }

  /** The text, or none. */
  async chatOrEmpty(content, options) {
    return (await this.chat(content, options)).text;
  }
}

/** Unknown where the usage or the price is. */
function costOf({ inputTokens, outputTokens }, price) {
  const cost = (inputTokens * price?.input + outputTokens * price?.output) / 1e6;
  return Number.isNaN(cost) ? undefined : cost;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  console.log(await LlmClient.fromEnv().chatOrEmpty(process.argv.slice(2).join(" ")));
}
