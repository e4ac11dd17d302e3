/** The clients of the drill on a page: `openai`, which has to be told that a browser is meant, and plain `fetch`. */
import { openai } from "../js/openai.mjs";

/** No page learns when a connection was made: there is no connect timeout here. */
const CAN = ["interrupt"];

export const clients = [
  plainFetch(),
  { ...openai({ can: CAN, settings: { dangerouslyAllowBrowser: true } }), resends: true },
];

/** An answer that is none, as a page's own code throws it: the response, and its body where the retry is decided. */
class NoAnswer extends Error {
  constructor(response, body) {
    super(body?.error?.message ?? `the server answered ${response.status}`);
    this.response = response;
    this.status = response.status;
    this.body = body;
  }
}

function plainFetch() {
  return {
    name: "fetch",
    can: CAN,
    resends: true,
    // What it throws by itself is a TypeError.
    isOwn: (error) => error instanceof NoAnswer || error instanceof TypeError,
    text: (completion) => completion.choices[0].message.content,
    async ask({ url, drill, model, prompt }, { signal, idempotencyKey }) {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-drill-id": drill, "idempotency-key": idempotencyKey },
        body: JSON.stringify({ model, messages: [{ role: "user", content: prompt }] }),
        signal,
      });
      const body = await response.json().catch(() => undefined);
      if (!response.ok) throw new NoAnswer(response, body);
      return body;
    },
  };
}
