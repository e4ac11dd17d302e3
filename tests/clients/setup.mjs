/** What the tests of clients share: the gateway, what it was asked, and how promises end. */
import { createRequire } from "node:module";
import { after } from "node:test";

import { openGateway } from "../drill/node/places.mjs";
import { ROOT, TARGET } from "../js/paths.mjs";

export { QUICK, TEXT, until } from "../js/shared.mjs";

/** The package as it is built, on one engine: a process has one. */
export async function reprieveOn(engine) {
  return import(`${ROOT}bindings-node/dist/node/${engine}.js`);
}

/** The same as CommonJS. */
export const required = createRequire(`${ROOT}bindings-node/package.json`);

/** A gateway for the tests of this file. */
export async function gatewayForTests() {
  const gateway = await openGateway(`${TARGET}release/gateway`);
  after(() => gateway.close());
  const stats = async (drill) => {
    const told = await fetch(`${gateway.url}/__stats?drill=${drill}`);
    return (await told.json()).drills[drill];
  };
  return {
    url: gateway.url,
    /** The requests of a drill, in order. */
    async requests(drill) {
      const { behaviours = {} } = (await stats(drill)) ?? {};
      return Object.values(behaviours).flatMap(({ requests }) => requests);
    },
    /** How many there were. */
    async count(drill) {
      return (await stats(drill))?.count ?? 0;
    },
  };
}

/** The marker of an answer that nobody waits for. */
export const NEVER = "slow=600000";
/** Attempts enough, where what is too slow is cut: on a busy machine what is meant to be answered may be cut as well. */
export const OFTEN = 50;

/** What a promise is rejected with. */
export async function thrown(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

/** The lines of a sink, parsed. */
export function records() {
  const lines = [];
  return { lines, sink: (line) => lines.push(JSON.parse(line)) };
}
