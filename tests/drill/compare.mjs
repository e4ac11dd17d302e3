/**
 * What a failure does to a user of each client in JavaScript, without reprieve and with it, against the fault gateway.
 *
 *     node tests/drill/compare.mjs
 *
 * One line of JSON for each: `client`, `failure`, `how` (`without` or `with`), `requests` that the gateway counted,
 * `seconds`, and what the user `saw`. Needs `npm ci` in `tests` and `make node gateway`.
 */
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, streamText } from "ai";
import OpenAI from "openai";

import { deadline } from "../js/deadline.mjs";
import { ROOT, TARGET } from "../js/paths.mjs";
import { TEXT } from "../js/shared.mjs";
import { openGateway } from "./node/places.mjs";

const { retry, wrap, wrapFetch } = await import(`${ROOT}bindings-node/dist/node/index.js`);
const { resilient } = await import(`${ROOT}bindings-node/dist/integrations/ai-sdk.js`);

/** What goes wrong: the marker for the gateway, the fields of the policy, and what is special about the call. */
const FAILURES = [
  { name: "wrong key", marker: "401" },
  { name: "429, retry-after 2 s", marker: "retry-after=2" },
  { name: "overloaded three times", marker: "503x3", fields: { maxAttempts: 4 } },
  { name: "always 500, in a framework that tries 3 times", marker: "500", fields: { maxAttempts: 3 }, framework: true },
  {
    name: "connection lost amid a stream",
    marker: "sse-cut=3,ok",
    fields: { stream: { mode: "buffered" } },
    stream: true,
  },
  { name: "stream cut after content", marker: "sse-eof=3,ok", fields: { stream: { mode: "buffered" } }, stream: true },
];

/** Each asks once: it answers the text, or throws. */
const CLIENTS = {
  "openai for npm"(url, headers, policy) {
    const plain = new OpenAI({ apiKey: "none", baseURL: `${url}/v1`, defaultHeaders: headers });
    const client = policy ? wrap(plain, policy) : plain;
    return async (content, stream) => {
      const answer = await client.chat.completions.create({
        model: "gpt-5",
        messages: [{ role: "user", content }],
        stream,
      });
      return stream ? told(answer, (chunk) => chunk.choices[0]?.delta.content) : answer.choices[0].message.content;
    };
  },
  "@anthropic-ai/sdk"(url, headers, policy) {
    const plain = new Anthropic({ apiKey: "none", baseURL: url, defaultHeaders: headers });
    const client = policy ? wrap(plain, policy) : plain;
    return async (content, stream) => {
      const asked = { model: "claude-5", max_tokens: 50, messages: [{ role: "user", content }], stream };
      const answer = await client.messages.create(asked);
      return stream ? told(answer, (event) => event.delta?.text) : answer.content[0].text;
    };
  },
  fetch(url, headers, policy) {
    const send = policy ? wrapFetch(fetch, policy, { methods: ["POST"] }) : fetch;
    return async (content, stream) => {
      const body = JSON.stringify({ model: "gpt-5", messages: [{ role: "user", content }], stream });
      const answer = await send(`${url}/v1/chat/completions`, { method: "POST", body, headers });
      if (!answer.ok) throw Object.assign(new Error(`status ${answer.status}`), { name: `status ${answer.status}` });
      return stream
        ? told(eventsOf(answer), (event) => event.choices[0]?.delta.content)
        : (await answer.json()).choices[0].message.content;
    };
  },
  "AI SDK"(url, headers, policy) {
    const plain = createOpenAI({ apiKey: "none", baseURL: `${url}/v1`, headers }).chat("gpt-5");
    const model = policy ? resilient(plain, policy) : plain;
    return async (prompt, stream) => {
      if (!stream) return (await generateText({ model, prompt })).text;
      let failed;
      const { textStream } = streamText({ model, prompt, onError: ({ error }) => (failed = error) });
      const text = await told(textStream, (delta) => delta);
      if (failed) throw Object.assign(failed, { text });
      return text;
    };
  },
};

deadline(600);
const gateway = await openGateway(`${TARGET}release/gateway`);
try {
  const cases = Object.keys(CLIENTS).flatMap((client) =>
    FAILURES.flatMap((failure) => ["without", "with"].map((how) => play(client, failure, how))),
  );
  for (const row of await Promise.all(cases)) console.log(JSON.stringify(row));
} finally {
  gateway.close();
}

async function play(client, { name: failure, marker, fields = {}, stream = false, framework = false }, how) {
  const drill = `${client}, ${failure}, ${how}`.replaceAll(/\W+/g, "-");
  const policy = how === "with" ? fields : undefined;
  const ask = CLIENTS[client](gateway.url, { "x-drill-id": drill }, policy);
  const once = () => ask(`#[${marker}]`, stream);
  const began = performance.now();
  const saw = await (framework ? inFramework(once, policy) : once()).then(sawText, sawError);
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  const { drills } = await (await fetch(`${gateway.url}/__stats?drill=${drill}`)).json();
  return { client, failure, how, requests: drills[drill].count, seconds, saw };
}

/** As frameworks do: whatever fails is tried again, twice; with reprieve they use the same engine, which knows better. */
async function inFramework(once, policy) {
  if (policy) return retry(once, policy);
  for (let attempt = 1; ; attempt++) {
    try {
      return await once();
    } catch (error) {
      if (attempt === 3) throw error;
    }
  }
}

function sawText(text) {
  return text === TEXT ? "the answer" : `${much(text)}, as if that was all`;
}

function sawError(error) {
  return error.text === undefined ? kindOf(error) : `${much(error.text)}, then ${kindOf(error)}`;
}

function much(text) {
  const count = text.split(" ").filter(Boolean).length;
  return count > 0 ? `${count} words` : "nothing";
}

function kindOf(error) {
  return error.name === "Error" ? error.constructor.name : error.name;
}

/** The text of a stream; an error knows what had come before it. */
async function told(stream, textOf) {
  let text = "";
  try {
    for await (const item of stream) text += textOf(item) ?? "";
  } catch (error) {
    throw Object.assign(error, { text });
  }
  return text;
}

async function* eventsOf({ body }) {
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const events = (rest + text).split("\n\n");
    rest = events.pop();
    for (const event of events) if (event.startsWith("data: {")) yield JSON.parse(event.slice(6));
  }
}
