/** The clients whose streams are played: those of two SDKs as they are, with their own retries off, and plain `fetch`. */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const MODEL = "gateway";

/** `settings` go to both SDKs: a page has to say that it is one. */
export function clientsFor(url, settings = {}) {
  const openai = new OpenAI({ apiKey: "test", baseURL: `${url}/v1`, maxRetries: 0, ...settings });
  const anthropic = new Anthropic({ apiKey: "test", baseURL: url, maxRetries: 0, ...settings });
  return [chat(openai), responses(openai), messages(anthropic), helper(anthropic), bare(url)];
}

/** The same once wrapped: `wrap` is a function of the package. */
export function wrappedFor(url, wrap, settings = {}) {
  const openai = new OpenAI({ apiKey: "test", baseURL: `${url}/v1`, ...settings });
  const anthropic = new Anthropic({ apiKey: "test", baseURL: url, ...settings });
  return { openai: chat(wrap(openai)), anthropic: messages(wrap(anthropic)) };
}

/** A request's own options, and with another `fetch` a client of its own. */
const asked = (marker, said) => [
  { role: "user", content: `#[${marker}] please` },
  ...(said ? [{ role: "assistant", content: said }] : []),
];
const options = (drill, attempt) => ({ headers: { "x-drill-id": drill }, signal: attempt?.signal });
const with_ = (client, fetch) => (fetch ? client.withOptions({ fetch }) : client);

function chat(client) {
  return {
    name: "openai chat",
    counts: true,
    text: (chunk) => chunk.choices?.[0]?.delta?.content ?? "",
    stream: ({ marker, drill, attempt, said, fetch }) =>
      with_(client, fetch).chat.completions.create(
        { model: MODEL, stream: true, stream_options: { include_usage: true }, messages: asked(marker, said) },
        options(drill, attempt),
      ),
    async ask({ marker, drill, fetch }) {
      const body = { model: MODEL, messages: asked(marker) };
      const answer = await with_(client, fetch).chat.completions.create(body, options(drill));
      return answer.choices[0].message.content;
    },
  };
}

function responses(client) {
  return {
    name: "openai responses",
    counts: true,
    text: (event) => (event.type === "response.output_text.delta" ? event.delta : ""),
    stream: ({ marker, drill, attempt, said }) =>
      client.responses.create({ model: MODEL, stream: true, input: asked(marker, said) }, options(drill, attempt)),
  };
}

const delta = (event) => (event.type === "content_block_delta" ? (event.delta.text ?? "") : "");

function messages(client) {
  return {
    name: "anthropic",
    counts: true,
    text: delta,
    stream: ({ marker, drill, attempt, said, fetch }) =>
      with_(client, fetch).messages.create(
        { model: MODEL, max_tokens: 50, stream: true, messages: asked(marker, said) },
        options(drill, attempt),
      ),
    async ask({ marker, drill, fetch }) {
      const body = { model: MODEL, max_tokens: 50, messages: asked(marker) };
      const answer = await with_(client, fetch).messages.create(body, options(drill));
      return answer.content.map(({ text }) => text).join("");
    },
  };
}

/** The helper that collects a message while it streams. */
function helper(client) {
  return {
    name: "anthropic's helper",
    counts: true,
    text: delta,
    stream: ({ marker, drill, attempt, said }) =>
      client.messages.stream({ model: MODEL, max_tokens: 50, messages: asked(marker, said) }, options(drill, attempt)),
  };
}

/** Frames read by hand from a response's body. */
function bare(url) {
  return {
    name: "fetch",
    text: (event) => event.choices?.[0]?.delta?.content ?? "",
    async *stream({ marker, drill, attempt, said }) {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-drill-id": drill },
        body: JSON.stringify({ model: MODEL, stream: true, messages: asked(marker, said) }),
        signal: attempt.signal,
      });
      if (!response.ok) throw Object.assign(new Error(`status ${response.status}`), { response });
      let rest = "";
      const decoder = new TextDecoder();
      for (const reader = response.body.getReader(); ; ) {
        const { done, value } = await reader.read();
        if (done) return;
        const frames = (rest + decoder.decode(value, { stream: true })).split("\n\n");
        rest = frames.pop();
        for (const frame of frames) if (frame.startsWith("data: {")) yield JSON.parse(frame.slice(6));
      }
    },
  };
}
