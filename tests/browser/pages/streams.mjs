/** The streams and requests of real clients, as they are played in Node, on a page. */
import { TEXT } from "../../js/shared.mjs";
import { casesFor } from "../../streams/cases.mjs";
import { clientsFor, wrappedFor } from "../../streams/clients.mjs";
import * as reprieve from "./reprieve.mjs";

globalThis.playStreams = async (url) => {
  const place = { reprieve, url, fetch: undefined, Request };
  const cases = casesFor(clientsFor(url, { dangerouslyAllowBrowser: true }));
  const failures = [];
  for (const [name, play] of cases) await play(place).catch((error) => failures.push(`${name}: ${error.message}`));
  failures.push(...(await wrappedClients(url)));
  return { played: cases.length, failures };
};

/** Clients that are wrapped: what each answers after failures, plain and as a stream. */
async function wrappedClients(url) {
  const quickly = (client) => reprieve.wrap(client, { backoff: { base: 1 } });
  const clients = wrappedFor(url, quickly, { dangerouslyAllowBrowser: true });
  const failures = [];
  for (const [name, client] of Object.entries(clients)) {
    const plain = await client.ask({ marker: "503,429,ok", drill: `page-${name}` });
    let streamed = "";
    const request = { marker: "502,sse-cut=0,ok", drill: `page-${name}` };
    for await (const item of await client.stream(request)) streamed += client.text(item);
    for (const text of [plain, streamed]) if (text !== TEXT) failures.push(`wrapped ${name}: ${text}`);
  }
  return failures;
}
