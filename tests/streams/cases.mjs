/**
 * Streams and requests of real clients, against the fault gateway: the same cases in Node, over both engines, and on a
 * page. Each gets a place (`reprieve`, the gateway's `url`, `clients`) and throws what is not as it should be.
 */
import { equal, matches, same, thrown } from "./check.mjs";

export const ANSWER = "The gateway answers: all is well, 世界é";

/** As policies go in a test: nothing is waited for. */
const QUICK = { backoff: { kind: "constant", base: 1 }, jitter: { kind: "none" } };

let drills = 0;

/** One case's own count of requests. */
function drill({ url }) {
  drills += 1;
  const id = `streams-${drills}`;
  const all = async () => {
    const { drills } = await (await fetch(`${url}/__stats?drill=${id}`)).json();
    return Object.values(drills[id]?.behaviours ?? {}).flatMap(({ requests }) => requests);
  };
  return { id, all, count: async () => (await all()).length };
}

/** Waits for what comes in a moment, however long that is on a busy machine. */
async function until(there) {
  for (let i = 0; !there(); i++) {
    if (i === 20_000) throw new Error(`it never came true: ${there}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Plays a marker through a client; answers the text, the items, what was thrown and how often was asked. */
async function play(place, client, marker, fields = {}, resumes) {
  const { retryStream, traceOf, Discard } = place.reprieve;
  const { id, count } = drill(place);
  const ask = (attempt) => client.stream({ marker, drill: id, attempt, said: resumes?.(attempt, client) ?? "" });
  const stream = retryStream(ask, { ...QUICK, ...fields });
  const items = [];
  let text = "";
  const error = await thrown(async () => {
    for await (const item of stream) {
      items.push(item);
      text = item instanceof Discard ? "" : text + client.text(item);
    }
  });
  const trace = error === undefined ? stream.trace : traceOf(error);
  return { text, items, error, trace, requests: await count() };
}

/** It was idle after its first content, and so the last; on a busy machine attempts before it may not have got there. */
function isIdleAfterContent({ error, trace, requests }) {
  same([error?.name, trace.ended.reason], ["AttemptTimeout", "already_delivered"]);
  const { receipts } = trace;
  same([...new Set(receipts.map(({ kind }) => kind))], ["timeout"]);
  same(receipts.map(({ delivered }) => delivered > 0).indexOf(true), receipts.length - 1);
  equal(requests <= receipts.length, true);
}

/** What each client's streams must do. */
const OF_EACH = {
  async "an answer comes whole"(place, client) {
    const { text, requests, trace } = await play(place, client, "ok");
    same([text, requests], [ANSWER, 1]);
    const [receipt] = trace.receipts;
    equal(receipt.outcome, "success");
    if (client.counts) equal(receipt.output_tokens > 0, true);
  },

  async "what fails before the first content is asked again"(place, client) {
    // Of a generator nobody knows that it should have said something.
    const faults = ["503", "sse-cut=0", "sse-eof=0", "sse-error=0", "reset", ...(client.counts ? ["sse-void"] : [])];
    for (const fault of faults) {
      const { text, requests, error } = await play(place, client, `${fault},ok`);
      same([fault, text, requests, error], [fault, ANSWER, 2, undefined]);
    }
  },

  async "what fails after it stops, with the client's own error"(place, client) {
    for (const fault of ["sse-cut=2", "sse-error=2", "sse-eof=2"]) {
      const { text, requests, error, trace } = await play(place, client, fault);
      same([fault, text, requests], [fault, ANSWER.slice(0, text.length), 1]);
      equal(text.length > 0 && text.length < ANSWER.length, true);
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
      same([fault, text, requests], [fault, ANSWER, 2]);
    }
  },

  async "restart: what came is void, and the answer comes whole"(place, client) {
    const { text, items, requests } = await play(place, client, "sse-cut=2,ok", { stream: { mode: "restart" } });
    same([text, requests], [ANSWER, 2]);
    const at = items.findIndex((item) => item instanceof place.reprieve.Discard);
    equal(items[at].count, at);
  },

  async "resume: the answer goes on where it broke off"(place, client) {
    const said = (attempt, { text }) => attempt.delivered.map(text).join("");
    const { text, requests, trace } = await play(place, client, "sse-cut=2,ok", { stream: { mode: "resume" } }, said);
    same([text, requests], [ANSWER, 2]);
    equal(trace.receipts[1].delivered > trace.receipts[0].delivered, true);
  },

  async "a source that stalls is left, before its first content and after"(place, client) {
    // On a busy machine what is meant to be answered may be left as well.
    const often = { maxAttempts: 50, stream: { firstItemTimeout: 200 } };
    const early = await play(place, client, "sse-stall=0,ok", often);
    const kinds = early.trace.receipts.map(({ kind }) => kind);
    same([early.text, [...new Set(kinds)], kinds.at(-1)], [ANSWER, ["timeout", null], null]);
    equal(early.requests <= kinds.length, true);
    const late = await play(place, client, "sse-stall=2", { maxAttempts: 50, stream: { idleTimeout: 200 } });
    isIdleAfterContent(late);
    matches(late.error.message, /was idle for 0.2 s/);
  },

  async "a source that is slow is joined by another"(place, client) {
    const { text, requests, trace } = await play(place, client, "sse-first=600000,ok", { hedge: { after: 100 } });
    same([text, requests, trace.ended.outcome], [ANSWER, 2, "success"]);
  },

  async "keep-alives are no items"(place, client) {
    isIdleAfterContent(await play(place, client, "sse-idle=2", { maxAttempts: 50, stream: { idleTimeout: 350 } }));
    const { text } = await play(place, client, "sse-pings=3", { stream: { silenceTimeout: 60_000 } });
    equal(text, ANSWER);
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

const REQUESTS = {
  async "a status that says failure is asked again"(place) {
    const { id, count } = drill(place);
    const response = await wrapped(place)(`${place.url}/any?q=%23[503,429,ok]`, drilled(id));
    same([response.status, response.ok, await count()], [200, true, 3]);
    equal((await response.json()).choices[0].message.content, ANSWER);
    matches(response.url, /\/any\?q=/);
  },

  async "the last response is the answer, and can be read"(place) {
    const { id, count } = drill(place);
    const response = await wrapped(place)(`${place.url}/any?q=%23[503]`, drilled(id));
    same([response.status, await count()], [503, 3]);
    matches(await response.text(), /overloaded/);
    equal(place.reprieve.traceOf(response).ended.reason, "attempts_exhausted");
  },

  async "what is not idempotent is sent once, unless somebody says otherwise"(place) {
    const ways = [
      [1, {}, {}],
      [2, { methods: ["post"] }, {}],
      [2, {}, { "idempotency-key": "k" }],
      [2, { idempotencyHeader: "Idempotency-Key" }, {}],
    ];
    for (const [requests, options, headers] of ways) {
      const { id, all } = drill(place);
      const send = wrapped(place, options);
      const init = { method: "POST", body: "#[503,ok]", headers: { "x-drill-id": id, ...headers } };
      const response = await send(`${place.url}/any`, init);
      await response.text();
      const seen = await all();
      same([response.status, seen.length], [requests === 1 ? 503 : 200, requests]);
      equal(new Set(seen.map((one) => one["idempotency-key"])).size, 1);
      equal(new Set(seen.map((one) => one.body_hash)).size, 1);
      if (requests === 1)
        matches(place.reprieve.traceOf(response).note, /to have a POST sent again, name it in methods/);
      if (options.idempotencyHeader) matches(seen[0]["idempotency-key"], /^[0-9a-f]{32}$/);
    }
  },

  async "what the server has refused may be sent again"(place) {
    const { id, count } = drill(place);
    const init = { method: "POST", body: "#[429,ok]", headers: { "x-drill-id": id } };
    same([(await wrapped(place)(`${place.url}/any`, init)).status, await count()], [200, 2]);
  },

  async "a body that is a stream is kept, or refused"(place) {
    const bytes = new TextEncoder().encode("#[503,ok] and more");
    const once = () => new Response(bytes).body;
    const { id, all } = drill(place);
    const init = { method: "PUT", headers: { "x-drill-id": id }, duplex: "half" };
    equal((await wrapped(place)(`${place.url}/any`, { ...init, body: once() })).status, 200);
    const own = "#[500,ok] a request's own";
    const request = new place.Request(`${place.url}/any`, { ...init, body: own });
    equal((await wrapped(place)(request)).status, 200);
    const lengths = (await all()).map((one) => one.body_length).sort();
    same(lengths, [bytes.length, bytes.length, own.length, own.length]);
    const refused = await thrown(() => wrapped(place, { maxBody: 4 })(`${place.url}/any`, { ...init, body: once() }));
    matches(refused.message, /the body of PUT http:.*of more than 4 bytes.*is not allowed; it takes text, bytes/);
    equal((await all()).length, 4);
  },

  async "a body that cannot be sent again is refused"(place) {
    const { id, count } = drill(place);
    const init = { method: "PUT", headers: { "x-drill-id": id }, duplex: "half" };
    const used = new place.Request(`${place.url}/any`, { ...init, body: "#[ok]" });
    await used.text();
    const locked = new Response("#[ok]").body;
    locked.getReader();
    const junk = new ReadableStream({ start: (controller) => controller.enqueue(1) });
    const refused = async (...request) => (await thrown(() => wrapped(place)(...request)))?.message;
    matches(
      await refused(used),
      /^the body of PUT http:.*read already, or is being read, is not allowed; it takes text/,
    );
    matches(await refused(`${place.url}/any`, { ...init, body: locked }), /read already, or is being read,/);
    matches(await refused(`${place.url}/any`, { ...init, body: junk }), /a stream of numbers is not allowed/);
    equal(await count(), 0);
  },

  async "a body that never comes ends with the attempt, and with the caller's signal"(place) {
    const init = { method: "PUT", headers: {}, duplex: "half" };
    let left;
    const stalled = () =>
      new ReadableStream({
        cancel(reason) {
          left = reason;
        },
      });
    const once = wrapped(place, {}, { attemptTimeout: 20, maxAttempts: 1 });
    matches(
      (await thrown(() => once(`${place.url}/any`, { ...init, body: stalled() })))?.message,
      /longer than 0.02 s/,
    );
    const controller = new AbortController();
    const asked = thrown(() =>
      wrapped(place)(`${place.url}/any`, { ...init, body: stalled(), signal: controller.signal }),
    );
    const reason = new Error("enough");
    controller.abort(reason);
    equal(await asked, reason);
    await until(() => left === reason);
  },

  async "a copy of a response knows where it came from"(place) {
    const { id } = drill(place);
    const response = await wrapped(place)(`${place.url}/any?q=%23[503,ok]`, drilled(id));
    const copy = response.clone();
    same([copy.url, copy.status, await copy.text()], [response.url, 200, await response.text()]);
  },

  async "an error that keeps the response is not retried by the call around it"(place) {
    const { id, count } = drill(place);
    const { retry } = place.reprieve;
    const failing = (marker) => async () => {
      const response = await wrapped(place)(`${place.url}/any?q=%23[${marker}]`, drilled(id));
      throw Object.assign(new TypeError("fetch failed"), { response });
    };
    await thrown(() => retry(failing("500"), QUICK));
    equal(await count(), 3);
    await thrown(() => retry(failing("ok"), QUICK));
    equal(await count(), 6);
  },

  async "a body that breaks is asked for again, if it is short or is to come whole"(place) {
    const { id, count } = drill(place);
    const short = await wrapped(place)(`${place.url}/any?q=%23[cut=10,ok]`, drilled(id));
    same([(await short.json()).choices[0].message.content, await count()], [ANSWER, 2]);
    equal(place.reprieve.traceOf(short).receipts.length, 2);
    const fields = { stream: { mode: "buffered" } };
    const whole = wrapped(place, {}, fields);
    const long = await whole(`${place.url}/any?q=%23[sse-cut=3,ok]&stream=true`, drilled(id));
    same([/\[DONE\]/.test(await long.text()), await count()], [true, 4]);
  },

  async "what breaks after its first byte is an error"(place) {
    const { id, count } = drill(place);
    const response = await wrapped(place)(`${place.url}/any?q=%23[sse-cut=3]&stream=true`, drilled(id));
    const error = await thrown(() => response.text());
    const trace = place.reprieve.traceOf(response);
    same([response.status, trace.ended.reason, await count()], [200, "already_delivered", 1]);
    equal(error instanceof Error, true);
    const cut = wrapped(place, { maxBody: 0 });
    const early = await cut(`${place.url}/any?q=%23[cut=0,ok]`, drilled(id));
    same([(await early.json()).choices[0].message.content, await count()], [ANSWER, 3]);
  },

  async "who has read the last event has read all"(place) {
    const lines = [];
    const send = wrapped(place, { sink: (line) => lines.push(JSON.parse(line)) });
    const response = await send(`${place.url}/any?q=%23[ok]&stream=true`, drilled(drill(place).id));
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (let text = ""; !text.includes("[DONE]"); )
      text += decoder.decode((await reader.read()).value, { stream: true });
    await reader.cancel();
    await until(() => place.reprieve.traceOf(response)?.ended);
    equal(lines.at(-1).outcome, "success");
    equal(place.reprieve.traceOf(response).ended.outcome, "success");
  },

  async "the caller's signal is the end"(place) {
    const { id } = drill(place);
    const controller = new AbortController();
    const reason = new Error("enough");
    const asked = thrown(() =>
      wrapped(place)(`${place.url}/any?q=%23[slow=600000]`, { ...drilled(id), signal: controller.signal }),
    );
    setTimeout(() => controller.abort(reason), 30);
    equal(await asked, reason);
  },

  async "a body that nobody reads any further is let go of"(place) {
    const { id } = drill(place);
    const lines = [];
    const send = wrapped(place, { sink: (line) => lines.push(JSON.parse(line)) });
    const response = await send(`${place.url}/any?q=%23[sse-stall=1]&stream=true`, drilled(id));
    const reader = response.body.getReader();
    equal((await reader.read()).done, false);
    await reader.cancel();
    await until(() => lines.at(-1)?.reason);
    equal(lines.at(-1).reason, "cancelled");
  },

  async "who reads no body is not kept waiting"(place) {
    const { id } = drill(place);
    equal((await wrapped(place)(`${place.url}/any?q=%23[sse-slow=20]&stream=true`, drilled(id))).status, 200);
  },

  async "what no response can do is refused"(place) {
    const { wrapFetch } = place.reprieve;
    const refused = [
      [() => wrapFetch(wrapped(place)), /^fetch: a fetch that is wrapped already/],
      [() => wrapFetch("http://server"), /^fetch: http:.*a fetch function/],
      [() => wrapFetch(fetch, { stream: { mode: "restart" } }), /^stream.mode: restart .*takes nothing back/],
      [() => wrapFetch(fetch, { hedge: { after: 10 } }), /^hedge: .*hedge the function/],
      [() => wrapFetch(fetch, { targets: [{ id: "a" }, { id: "b" }] }), /^targets: a,b .*one target here/],
      [() => wrapFetch(fetch, {}, { maxBody: -1 }), /^maxBody: -1 .*whole number of bytes/],
      [() => wrapFetch(fetch, {}, { maxbody: 1 }), /^maxbody: .*no such option/],
      [() => wrapFetch(fetch, {}, { methods: "POST" }), /^methods: POST .*a list of names/],
      [() => wrapFetch(fetch, {}, { idempotencyHeader: "a key" }), /^idempotencyHeader: "a key" .*name of a header/],
      [() => wrapFetch(fetch, "interactiv"), /^preset: "interactiv" .*interactive, batch/],
      [() => wrapFetch(fetch, 3), /^policy: 3 .*Policy.preset\(name\), or fields/],
    ];
    for (const [what, says] of refused) matches((await thrown(what))?.message ?? "nothing was refused", says);
  },
};

/** The `fetch` option of a client. */
const THROUGH = {
  async "a client's requests are asked again below it"(place, client) {
    const { id, all } = drill(place);
    const fetch = wrapped(place, { methods: ["POST"], idempotencyHeader: "idempotency-key" });
    const text = await client.ask({ marker: "503,429,ok", drill: id, fetch });
    const seen = await all();
    same([text, seen.length], [ANSWER, 3]);
    equal(new Set(seen.map((one) => one["idempotency-key"])).size, 1);
    same([...new Set(seen.map((one) => one["x-stainless-retry-count"]))], ["0"]);
  },

  async "the client's own error keeps the trace"(place, client) {
    const { id, count } = drill(place);
    const error = await thrown(() =>
      client.ask({ marker: "503", drill: id, fetch: wrapped(place, { methods: ["POST"] }) }),
    );
    same([error.status, await count()], [503, 3]);
  },

  async "a call around it adds no requests"(place, client) {
    const { id, count } = drill(place);
    const fetch = wrapped(place, { methods: ["POST"] });
    const error = await thrown(() =>
      place.reprieve.retry(() => client.ask({ marker: "503", drill: id, fetch }), QUICK),
    );
    same([error.status, await count()], [503, 3]);
  },

  async "its streams are asked for again until their first content"(place, client) {
    for (const fault of ["503", "sse-cut=0", "sse-eof=0", "sse-error=0", "sse-void"]) {
      const { id, count } = drill(place);
      const stream = await client.stream({
        marker: `${fault},ok`,
        drill: id,
        fetch: wrapped(place, { methods: ["POST"] }),
      });
      let text = "";
      for await (const item of stream) text += client.text(item);
      same([fault, text, await count()], [fault, ANSWER, 2]);
    }
  },

  async "and are whole where they are buffered"(place, client) {
    for (const fault of ["sse-cut=2", "sse-eof=2", "sse-error=2"]) {
      const { id, count } = drill(place);
      const fetch = wrapped(place, { methods: ["POST"] }, { stream: { mode: "buffered" } });
      const stream = await client.stream({ marker: `${fault},ok`, drill: id, fetch });
      let text = "";
      for await (const item of stream) text += client.text(item);
      same([fault, text, await count()], [fault, ANSWER, 2]);
    }
  },

  async "what its streams say of an error is the client's to throw"(place, client) {
    const { id, count } = drill(place);
    const error = await thrown(async () => {
      const fetch = wrapped(place, { methods: ["POST"] });
      for await (const _ of await client.stream({ marker: "sse-error=0", drill: id, fetch }));
    });
    matches(error.constructor.name, /APIError/);
    equal(await count(), 3);
  },

  async "its streams come through"(place, client) {
    const fetch = wrapped(place, { methods: ["POST"] });
    const { text, requests } = await play(
      place,
      { ...client, stream: (how) => client.stream({ ...how, fetch }) },
      "503,ok",
    );
    same([text, requests], [ANSWER, 2]);
  },
};

function wrapped({ reprieve, fetch }, options = {}, fields = {}) {
  return reprieve.wrapFetch(fetch, { ...QUICK, ...fields }, options);
}

const drilled = (id) => ({ headers: { "x-drill-id": id } });

/** All of them, by name. */
export function casesFor(clients) {
  const all = Object.entries(REQUESTS).map(([name, play]) => [`requests: ${name}`, play]);
  for (const client of clients) {
    for (const [name, play] of Object.entries(OF_EACH))
      all.push([`${client.name}: ${name}`, (place) => play(place, client)]);
    if (!client.ask) continue;
    for (const [name, play] of Object.entries(THROUGH)) {
      all.push([`fetch of ${client.name}: ${name}`, (place) => play(place, client)]);
    }
  }
  return all;
}
