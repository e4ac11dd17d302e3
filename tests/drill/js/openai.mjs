/** The `openai` client of the drill, its own retries off: the same in Node and on a page. */
import OpenAI, { APIError } from "openai";

/** What a request is given that the driver cuts, in milliseconds: more than any player waits for. */
const PATIENCE_MS = 600_000;

/** `settings` are the client's, `extras` a request's own for an attempt. */
export function openai({ can, settings = {}, extras = () => ({}) }) {
  const client = new OpenAI({ apiKey: "drill", baseURL: "http://127.0.0.1:1", maxRetries: 0, ...settings });
  return {
    name: "openai",
    can,
    counts: true,
    isOwn: (error) => error instanceof APIError,
    text: (completion) => completion.choices[0].message.content,
    ask({ url, drill, model, prompt }, attempt) {
      const headers = { "x-drill-id": drill, "idempotency-key": attempt.idempotencyKey };
      const options = { headers, signal: attempt.signal, timeout: PATIENCE_MS, ...extras(attempt) };
      const asked = { model, messages: [{ role: "user", content: prompt }] };
      return client.withOptions({ baseURL: `${url}/v1` }).chat.completions.create(asked, options);
    },
  };
}
