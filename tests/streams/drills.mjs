/** One case's requests, counted by the gateway; a stream and a `fetch` under a policy there. */
import { QUICK } from "../js/shared.mjs";
import { thrown } from "./check.mjs";

let drills = 0;

/** One case's own count of requests. */
export function drill({ url, name = "streams" }) {
  drills += 1;
  const id = `${name}-${drills}`;
  const all = async () => {
    const { drills } = await (await fetch(`${url}/__stats?drill=${id}`)).json();
    return Object.values(drills[id]?.behaviours ?? {}).flatMap(({ requests }) => requests);
  };
  return { id, all, count: async () => (await all()).length };
}

/** Plays a marker through a client; answers the text, the items, what was thrown and how often was asked. */
export async function play(place, client, marker, fields = {}, resumes) {
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

/** The place's `fetch`, wrapped. */
export function wrapped({ reprieve, fetch }, options = {}, fields = {}) {
  return reprieve.wrapFetch(fetch, { ...QUICK, ...fields }, options);
}
