/**
 * Streams and requests of real clients, against the fault gateway: the same cases in Node, over both engines, and on a
 * page. Each gets a place (`reprieve`, the gateway's `url`, `fetch`, `Request`, a `name` for its drills) and throws what is
 * not as it should be.
 */
import { STREAMS } from "./answers.mjs";
import { REQUESTS } from "./requests.mjs";
import { THROUGH } from "./through.mjs";

/** All of them, by name. */
export function casesFor(clients) {
  const all = Object.entries(REQUESTS).map(([name, play]) => [`requests: ${name}`, play]);
  for (const client of clients) {
    for (const [name, play] of Object.entries(STREAMS))
      all.push([`${client.name}: ${name}`, (place) => play(place, client)]);
    if (!client.ask) continue;
    for (const [name, play] of Object.entries(THROUGH)) {
      all.push([`fetch of ${client.name}: ${name}`, (place) => play(place, client)]);
    }
  }
  return all;
}
