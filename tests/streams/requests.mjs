/** A wrapped `fetch` by itself: statuses, bodies and signals. */
import { QUICK, TEXT, until } from "../js/shared.mjs";
import { equal, matches, same, thrown } from "./check.mjs";
import { drill, wrapped } from "./drills.mjs";

/** What it must do with requests. */
export const REQUESTS = {
  async "a status that says failure is asked again"(place) {
    const { id, count } = drill(place);
    const response = await wrapped(place)(`${place.url}/any?q=%23[503,429,ok]`, drilled(id));
    same([response.status, response.ok, await count()], [200, true, 3]);
    equal((await response.json()).choices[0].message.content, TEXT);
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

  async "forms, files and parameters are sent again as they are, by themselves and in a request"(place) {
    const form = new (place.FormData ?? FormData)();
    form.append("q", "#[503,ok] form");
    form.append("file", new Blob(["abc"]), "a.txt");
    const bodies = [form, new Blob(["#[503,ok] blob"]), new TextEncoder().encode("#[503,ok] bytes")];
    for (const body of [...bodies, new URLSearchParams({ q: "parameters" })]) {
      for (const asRequest of [false, true]) {
        const { id, all } = drill(place);
        const url = body instanceof URLSearchParams ? `${place.url}/any?q=%23[503,ok]` : `${place.url}/any`;
        const init = { method: "PUT", headers: { "x-drill-id": id }, body };
        const response = await wrapped(place)(...(asRequest ? [new place.Request(url, init)] : [url, init]));
        const lengths = (await all()).map((one) => one.body_length);
        same([response.status, lengths.length, lengths[0] > 0, lengths[0] === lengths[1]], [200, 2, true, true]);
      }
    }
  },

  async "a request whose body cannot be seen is sent as a copy"(place) {
    const { id, all } = drill(place);
    const own = "#[503,ok] unseen";
    const request = new place.Request(`${place.url}/any`, { method: "PUT", headers: { "x-drill-id": id }, body: own });
    Object.defineProperty(request, "body", { value: undefined });
    equal((await wrapped(place)(request)).status, 200);
    same(
      (await all()).map((one) => one.body_length),
      [own.length, own.length],
    );
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

  async "a body that an attempt's timeout cut is refused by name"(place) {
    const { id, count } = drill(place);
    async function* dripping() {
      yield new Uint8Array(1);
      await new Promise(() => {});
    }
    const send = wrapped(place, {}, { attemptTimeout: 20 });
    for (const body of [new ReadableStream(), dripping()]) {
      const init = { method: "PUT", headers: { "x-drill-id": id }, duplex: "half", body };
      const refused = await thrown(() => send(`${place.url}/any`, init));
      matches(refused?.message, /^the body of PUT http:.*sent once, and was not read to its end when an attempt ended/);
      same(
        place.reprieve.traceOf(refused).receipts.map(({ kind }) => kind),
        ["timeout", "unknown"],
      );
    }
    equal(await count(), 0);
  },

  async "a response is of the class of its fetch"(place) {
    const { id } = drill(place);
    for (const marker of ["503,ok", "500"]) {
      const response = await wrapped(place)(`${place.url}/any?q=%23[${marker}]`, drilled(id));
      equal(response instanceof (place.Response ?? Response), true);
      equal(response.clone() instanceof (place.Response ?? Response), true);
    }
  },

  async "a copy of a response knows where it came from"(place) {
    const { traceOf } = place.reprieve;
    for (const [marker, status] of [
      ["503,ok", 200],
      ["500", 500],
    ]) {
      const { id } = drill(place);
      const response = await wrapped(place)(`${place.url}/any?q=%23[${marker}]`, drilled(id));
      const copy = response.clone();
      same([copy.url, copy.status, await copy.text()], [response.url, status, await response.text()]);
      equal(traceOf(copy), traceOf(response));
      equal(traceOf(copy).receipts.length, status === 200 ? 2 : 3);
    }
    const streamed = await wrapped(place)(`${place.url}/any?q=%23[ok]&stream=true`, drilled(drill(place).id));
    const copy = streamed.clone();
    await Promise.all([streamed.text(), copy.text()]);
    equal(traceOf(copy).ended.outcome, "success");
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

  async "nor is one that has nothing but its status"(place) {
    const { id, count } = drill(place);
    const { retry, traceOf } = place.reprieve;
    const fails = async (statusOf) => {
      const asks = async () => {
        const { status } = await wrapped(place)(`${place.url}/any?q=%23[503]`, drilled(id));
        throw Object.assign(new Error("it did not work"), { status: statusOf(status) });
      };
      return traceOf(await thrown(() => retry(asks, QUICK))).receipts.length;
    };
    same([await fails((status) => status), await count()], [1, 3]);
    // What is another failure is one to retry.
    same([await fails(() => 500), await count()], [3, 12]);
  },

  async "a body that breaks is asked for again, if it is short or is to come whole"(place) {
    const { id, count } = drill(place);
    const short = await wrapped(place)(`${place.url}/any?q=%23[cut=10,ok]`, drilled(id));
    same([(await short.json()).choices[0].message.content, await count()], [TEXT, 2]);
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
    same([(await early.json()).choices[0].message.content, await count()], [TEXT, 3]);
  },

  async "a reader with a buffer of its own gets the body into it"(place) {
    for (const [marker, more] of [
      ["503,ok", ""],
      ["ok", "&stream=true"],
    ]) {
      const url = `${place.url}/any?q=%23[${marker}]${more}`;
      const response = await wrapped(place)(url, drilled(drill(place).id));
      const reader = response.body.getReader({ mode: "byob" });
      const decoder = new TextDecoder();
      let text = "";
      let buffer = new Uint8Array(50);
      for (;;) {
        const { done, value } = await reader.read(buffer);
        if (done) break;
        text += decoder.decode(value, { stream: true });
        buffer = new Uint8Array(value.buffer);
      }
      matches(text, marker === "ok" ? /\[DONE\]\s*$/ : /^\{.*\}\s*$/s);
      equal(place.reprieve.traceOf(response).ended.outcome, "success");
    }
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

  async "a response whose body is no stream is the caller's to read"(place) {
    const answers = [503, 200].map((status) => Response.json({ status }, { status }));
    const bare = async () => Object.defineProperty(answers.shift(), "body", { value: undefined });
    const response = await place.reprieve.wrapFetch(bare, QUICK)("http://server");
    same([(await response.json()).status, place.reprieve.traceOf(response).receipts.length], [200, 2]);
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
    const another = async () => ({ statusCode: 200, headers: {}, body: [] });
    refused.push([
      () => wrapFetch(another, QUICK)("http://server"),
      /^fetch: one that answers Object .*answers a Response/,
    ]);
    for (const [what, says] of refused) matches((await thrown(what))?.message ?? "nothing was refused", says);
  },
};

const drilled = (id) => ({ headers: { "x-drill-id": id } });
