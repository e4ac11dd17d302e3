/** Streams of a real client under a policy. */
import { QUICK, TEXT, until } from "../js/shared.mjs";
import { equal, matches, same } from "./check.mjs";
import { drill, play } from "./drills.mjs";

/** It was idle after its first content, and so the last; on a busy machine attempts before it may not have got there. */
function isIdleAfterContent({ error, trace, requests }) {
  same([error?.name, trace.ended.reason], ["AttemptTimeout", "already_delivered"]);
  const { receipts } = trace;
  same([...new Set(receipts.map(({ kind }) => kind))], ["timeout"]);
  same(receipts.map(({ delivered }) => delivered > 0).indexOf(true), receipts.length - 1);
  equal(requests <= receipts.length, true);
}

/** What each client's streams must do. */
export const STREAMS = {
  async "an answer comes whole"(place, client) {
    const { text, requests, trace } = await play(place, client, "ok");
    same([text, requests], [TEXT, 1]);
    const [receipt] = trace.receipts;
    equal(receipt.outcome, "success");
    if (client.counts) equal(receipt.output_tokens > 0, true);
  },

  async "what fails before the first content is asked again"(place, client) {
    // Of a generator nobody knows that it should have said something.
    const faults = ["503", "sse-cut=0", "sse-eof=0", "sse-error=0", "reset", ...(client.counts ? ["sse-void"] : [])];
    for (const fault of faults) {
      const { text, requests, error } = await play(place, client, `${fault},ok`);
      same([fault, text, requests, error], [fault, TEXT, 2, undefined]);
    }
  },

  async "what fails after it stops, with the client's own error"(place, client) {
    for (const fault of ["sse-cut=2", "sse-error=2", "sse-eof=2"]) {
      const { text, requests, error, trace } = await play(place, client, fault);
      same([fault, text, requests], [fault, TEXT.slice(0, text.length), 1]);
      equal(text.length > 0 && text.length < TEXT.length, true);
      equal(trace.ended.reason, "already_delivered");
      equal(trace.delivered.map((item) => client.text(item)).join(""), text);
      matches(error.message, /./);
    }
  },

  async "an answer that was filtered is none"(place, client) {
    const { error, requests, trace } = await play(place, client, "filter");
    same([trace.receipts[0].kind, requests], ["content_filtered", 1]);
    matches(error.message, /./);
  },

  async "buffered: asked again until it is whole"(place, client) {
    for (const fault of ["sse-cut=2", "sse-error=2", "sse-eof=2"]) {
      const { text, requests } = await play(place, client, `${fault},ok`, { stream: { mode: "buffered" } });
      same([fault, text, requests], [fault, TEXT, 2]);
    }
  },

  async "restart: what came is void, and the answer comes whole"(place, client) {
    const { text, items, requests } = await play(place, client, "sse-cut=2,ok", { stream: { mode: "restart" } });
    same([text, requests], [TEXT, 2]);
    const at = items.findIndex((item) => item instanceof place.reprieve.Discard);
    equal(items[at].count, at);
  },

  async "resume: the answer goes on where it broke off"(place, client) {
    const said = (attempt, { text }) => attempt.delivered.map(text).join("");
    const { text, requests, trace } = await play(place, client, "sse-cut=2,ok", { stream: { mode: "resume" } }, said);
    same([text, requests], [TEXT, 2]);
    equal(trace.receipts[1].delivered > trace.receipts[0].delivered, true);
  },

  async "a source that stalls is left, before its first content and after"(place, client) {
    // On a busy machine what is meant to be answered may be left as well.
    const often = { maxAttempts: 50, stream: { firstItemTimeout: 200 } };
    const early = await play(place, client, "sse-stall=0,ok", often);
    const kinds = early.trace.receipts.map(({ kind }) => kind);
    same([early.text, [...new Set(kinds)], kinds.at(-1)], [TEXT, ["timeout", null], null]);
    equal(early.requests <= kinds.length, true);
    const late = await play(place, client, "sse-stall=2", { maxAttempts: 50, stream: { idleTimeout: 200 } });
    isIdleAfterContent(late);
    matches(late.error.message, /was idle for 0.2 s/);
  },

  async "a source that is slow is joined by another"(place, client) {
    const { text, requests, trace } = await play(place, client, "sse-first=600000,ok", { hedge: { after: 100 } });
    same([text, requests, trace.ended.outcome], [TEXT, 2, "success"]);
  },

  async "keep-alives are no items"(place, client) {
    isIdleAfterContent(await play(place, client, "sse-idle=2", { maxAttempts: 50, stream: { idleTimeout: 350 } }));
    const { text } = await play(place, client, "sse-pings=3", { stream: { silenceTimeout: 60_000 } });
    equal(text, TEXT);
  },

  async "the first item comes when it arrives, and who leaves then ends the call"(place, client) {
    const { id, count } = drill(place);
    const lines = [];
    let signal;
    const stream = place.reprieve.retryStream(
      (attempt) => {
        signal = attempt.signal;
        return client.stream({ marker: "sse-stall=1", drill: id, attempt, said: "" });
      },
      QUICK,
      { sink: (line) => lines.push(JSON.parse(line)) },
    );
    for await (const item of stream) if (client.text(item)) break;
    await until(() => lines.at(-1)?.reason);
    same([lines.at(-1).reason, signal.aborted, await count()], ["cancelled", true, 1]);
  },
};
