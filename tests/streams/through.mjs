/** A wrapped `fetch` below a real client. */
import { QUICK, TEXT } from "../js/shared.mjs";
import { equal, matches, same, thrown } from "./check.mjs";
import { drill, play, wrapped } from "./drills.mjs";

/** The `fetch` option of a client. */
export const THROUGH = {
  async "a client's requests are asked again below it"(place, client) {
    const { id, all } = drill(place);
    const fetch = wrapped(place, { methods: ["POST"], idempotencyHeader: "idempotency-key" });
    const text = await client.ask({ marker: "503,429,ok", drill: id, fetch });
    const seen = await all();
    same([text, seen.length], [TEXT, 3]);
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
      same([fault, text, await count()], [fault, TEXT, 2]);
    }
  },

  async "and are whole where they are buffered"(place, client) {
    for (const fault of ["sse-cut=2", "sse-eof=2", "sse-error=2"]) {
      const { id, count } = drill(place);
      const fetch = wrapped(place, { methods: ["POST"] }, { stream: { mode: "buffered" } });
      const stream = await client.stream({ marker: `${fault},ok`, drill: id, fetch });
      let text = "";
      for await (const item of stream) text += client.text(item);
      same([fault, text, await count()], [fault, TEXT, 2]);
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
    same([text, requests], [TEXT, 2]);
  },
};
