/** Plays the cases in Node, over the engine that `reprieve` runs on. */
import { after, test } from "node:test";
import * as undici from "undici";

import { openGateway } from "../drill/node/places.mjs";
import { deadline } from "../js/deadline.mjs";
import { TARGET } from "../js/paths.mjs";
import { casesFor } from "./cases.mjs";
import { clientsFor } from "./clients.mjs";

export async function playAll(reprieve) {
  deadline(600);
  const { url, close } = await openGateway(`${TARGET}release/gateway`);
  after(close);
  for (const [name, play] of casesFor(clientsFor(url))) test(name, () => play({ reprieve, url, fetch, Request }));
  for (const [name, play] of casesFor([])) test(`undici, ${name}`, () => play({ reprieve, url, ...undici }));
}
