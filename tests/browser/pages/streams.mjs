/** The streams and requests of real clients, as they are played in Node, on a page and in a worker. */
import { TEXT } from "../../js/shared.mjs";
import { casesFor } from "../../streams/cases.mjs";
import { clientsFor, wrappedFor } from "../../streams/clients.mjs";
import * as reprieve from "./reprieve.mjs";

const WHERE = globalThis.document ? "page" : "worker";

globalThis.playStreams = async (url) => {
  const place = { reprieve, url, fetch: undefined, Request, name: WHERE };
  const cases = casesFor(clientsFor(url, { dangerouslyAllowBrowser: true }));
  const failures = [];
  for (const [name, play] of cases) await play(place).catch((error) => failures.push(`${name}: ${error.message}`));
  failures.push(...(await wrappedClients(url)));
  return { played: cases.length, failures };
};

// The same file is a worker's.
if (WHERE === "worker") {
  globalThis.onmessage = async ({ data }) => postMessage(await globalThis.playStreams(data));
}

/** The same in a worker. */
globalThis.playInWorker = (url) =>
  new Promise((resolve, reject) => {
    const worker = new Worker("/js/pages/streams.mjs", { type: "module" });
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage(url);
  });

/** Clients that are wrapped: what each answers after failures, plain and as a stream. */
async function wrappedClients(url) {
  const quickly = (client) => reprieve.wrap(client, { backoff: { base: 1 } });
  const clients = wrappedFor(url, quickly, { dangerouslyAllowBrowser: true });
  const failures = [];
  for (const [name, client] of Object.entries(clients)) {
    const plain = await client.ask({ marker: "503,429,ok", drill: `${WHERE}-${name}` });
    let streamed = "";
    const request = { marker: "502,sse-cut=0,ok", drill: `${WHERE}-${name}` };
    for await (const item of await client.stream(request)) streamed += client.text(item);
    for (const text of [plain, streamed]) if (text !== TEXT) failures.push(`wrapped ${name}: ${text}`);
  }
  return failures;
}
