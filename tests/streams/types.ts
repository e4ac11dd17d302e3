/** Streams and requests keep the types of their clients. This is compiled against the packages, and never run. */

import "reprieve/context";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { Discard, Policy, type RetryStream, retryStream, type StreamAttempt, traceOf, wrapFetch } from "reprieve";
import * as undici from "undici";

const chat = new OpenAI({ maxRetries: 0, fetch: wrapFetch(fetch, { maxAttempts: 4 }, { methods: ["POST"] }) });
const claude = new Anthropic({ maxRetries: 0, fetch: wrapFetch(fetch, Policy.preset("interactive")) });

export async function words(): Promise<string> {
  const stream = retryStream(
    (attempt) =>
      chat.chat.completions.create(
        { model: "m", messages: [], stream: true },
        { signal: attempt.signal, timeout: attempt.timeout },
      ),
    { stream: { idleTimeout: "15s" } },
  );
  let text = "";
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
  return `${text} ${stream.trace?.delivered?.length}`;
}

export async function anew(): Promise<string> {
  const asked = { model: "m", max_tokens: 1, messages: [], stream: true as const };
  const stream = retryStream(({ signal }) => claude.messages.create(asked, { signal }), {
    stream: { mode: "restart" },
  });
  let text = "";
  for await (const item of stream) {
    if (item instanceof Discard) text = "";
    else if (item.type === "content_block_delta" && item.delta.type === "text_delta") text += item.delta.text;
  }
  return text;
}

const resuming = new Policy({ stream: { mode: "resume" } });
export const resumed: RetryStream<string> = retryStream(async function* (attempt: StreamAttempt<string>) {
  yield attempt.delivered.join("");
}, resuming);
export const helper: Promise<string | undefined> = retryStream(({ signal }) =>
  claude.messages.stream({ model: "m", max_tokens: 1, messages: [] }, { signal }),
)
  .next()
  .then(({ value }) => value?.type);
export const bytes: RetryStream<Uint8Array> = retryStream(() => fetch("http://server/"));
export const own: Promise<undici.Response> = wrapFetch(undici.fetch, {})("http://server/");
export const reason: unknown = traceOf(new Error("some"))?.ended?.reason;

// @ts-expect-error: nothing of which a stream could be made
retryStream(async () => 7);
// @ts-expect-error: there is no such option
wrapFetch(fetch, {}, { method: ["POST"] });
