/** The clients of the drill in Node: `openai` and `@anthropic-ai/sdk`, their own retries off. */
import Anthropic, { APIError } from "@anthropic-ai/sdk";
import { Agent, buildConnector } from "undici";

import { openai } from "../js/openai.mjs";

/** Both hand a signal on to `fetch`, and let its connections be made by an agent of one's own. */
const CAN = ["interrupt", "connect timeout"];
/** What a request is given that the driver cuts, in milliseconds: more than any player waits for. */
const PATIENCE_MS = 600_000;

export const clients = [openai({ can: CAN, extras: connecting }), anthropic()];

/** Its calls are executed and answer a `Result`; those of `openai` throw. */
function anthropic() {
  const client = new Anthropic({ apiKey: "drill", baseURL: "http://127.0.0.1:1", maxRetries: 0 });
  return {
    name: "anthropic",
    can: CAN,
    counts: true,
    executes: true,
    isOwn: (error) => error instanceof APIError,
    text: (message) => message.content.map((block) => block.text ?? "").join(""),
    ask({ url, drill, model, prompt }, attempt) {
      const headers = { "x-drill-id": drill, "idempotency-key": attempt.idempotencyKey };
      const options = { headers, signal: attempt.signal, timeout: PATIENCE_MS, ...connecting(attempt) };
      const asked = { model, max_tokens: 50, messages: [{ role: "user", content: prompt }] };
      return client.withOptions({ baseURL: url }).messages.create(asked, options);
    },
  };
}

const agents = new Map();

/** `fetch` itself knows no connect timeout; an agent does. */
function connecting({ connectTimeout, timeout }) {
  if (connectTimeout >= timeout) return {};
  if (!agents.has(connectTimeout)) agents.set(connectTimeout, new Agent({ connect: within(connectTimeout) }));
  return { fetchOptions: { dispatcher: agents.get(connectTimeout) } };
}

/** Connects in time or not at all. The agent's own timeout may come half a second late. */
function within(ms) {
  const connect = buildConnector({ timeout: 0 });
  return (options, done) => {
    const late = Object.assign(new Error(`no connection within ${ms} ms`), { code: "UND_ERR_CONNECT_TIMEOUT" });
    const timer = setTimeout(() => socket.destroy(late), ms);
    const socket = connect(options, (...answer) => {
      clearTimeout(timer);
      done(...answer);
    });
  };
}
