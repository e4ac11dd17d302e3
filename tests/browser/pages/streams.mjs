/** The streams and requests of real clients, as they are played in Node, on a page. */
import { casesFor } from "../../streams/cases.mjs";
import { clientsFor } from "../../streams/clients.mjs";
import * as reprieve from "./reprieve.mjs";

globalThis.playStreams = async (url) => {
  const place = { reprieve, url, fetch: undefined, Request };
  const cases = casesFor(clientsFor(url, { dangerouslyAllowBrowser: true }));
  const failures = [];
  for (const [name, play] of cases) await play(place).catch((error) => failures.push(`${name}: ${error.message}`));
  return { played: cases.length, failures };
};
