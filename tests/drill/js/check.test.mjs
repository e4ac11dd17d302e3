/**
 * The drill in JavaScript fails when it should: whatever it expects, expecting something else is noticed.
 *
 *     node --test tests/drill/js/
 *
 * Needs what `tests/drill/node/drill.mjs` needs.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import * as reprieve from "../../../bindings-node/dist/node/index.js";
import { TARGET, TESTS } from "../../js/paths.mjs";
import { clients } from "../node/clients.mjs";
import { openFullBacklog, openGateway } from "../node/places.mjs";
import { differences, hidden } from "./check.mjs";
import { openai } from "./openai.mjs";
import { drillId, play, stats, stepsOf } from "./play.mjs";

const { prompt_version: promptVersion, scenarios } = JSON.parse(readFileSync(`${TESTS}drill/scenarios.json`, "utf8"));
let gateway;
let backlog;
let place;

before(async () => {
  gateway = await openGateway(`${TARGET}release/gateway`);
  backlog = await openFullBacklog();
  place = { reprieve, promptVersion, gateway: gateway.url, backlog: backlog.url };
  // What is loaded when it is first used costs no scenario its time.
  await Promise.all(
    clients.map((client) => play(place, client, { id: "warm-up", policy: {}, prompts: { primary: "#[ok]" } })),
  );
});

after(() => {
  backlog.close();
  gateway.close();
});

/** The same expectation with something else in each of its places. */
function* altered(expected) {
  if (Array.isArray(expected) && expected[1] === null) {
    yield [expected[0] + 3_600_000, null];
  } else if (Array.isArray(expected) && typeof expected[0] === "number") {
    yield [expected[1] + 10_000, expected[1] + 20_000];
    yield [expected[0] - 20_000, expected[0] - 10_000];
  } else if (Array.isArray(expected)) {
    yield expected.slice(1);
    for (const [i, value] of expected.entries()) {
      if (typeof value === "object") for (const other of altered(value)) yield expected.with(i, other);
    }
  } else if (typeof expected === "object" && expected !== null) {
    for (const [name, value] of Object.entries(expected)) {
      for (const other of altered(value)) yield { ...expected, [name]: other };
    }
  } else if (typeof expected === "number") {
    yield expected + 1;
  } else if (typeof expected === "string") {
    yield expected.startsWith("~") ? "~^something else$" : `${expected}, or so`;
  } else {
    yield typeof expected === "boolean" ? !expected : "something";
  }
}

test("every expectation can fail, and a record that is missing is noticed", async (t) => {
  let tried = 0;
  const playing = scenarios.flatMap((scenario) =>
    clients.map(async (client) => [scenario, await play(place, client, scenario)]),
  );
  for (const [scenario, seen] of await Promise.all(playing)) {
    for (const [i, { title, expect }] of stepsOf(scenario).entries()) {
      const one = seen[i];
      assert.deepEqual(differences(expect, one), [], title);
      for (const other of altered(expect)) {
        assert.notDeepEqual(differences(other, one), [], `${title}: ${JSON.stringify(other)} is not noticed`);
        tried += 1;
      }
      const [first, ...others] = one.calls;
      const receipts = first.receipts.slice(1);
      const records = first.records.filter((record) => record !== first.receipts[0]);
      assert.notDeepEqual(
        differences(expect, { ...one, calls: [{ ...first, receipts, records }, ...others] }),
        [],
        title,
      );
    }
  }
  assert(tried > 200);
  t.diagnostic(`${tried} other expectations, each noticed`);
});

test("retries that a client makes by itself are noticed", async () => {
  const scenario = scenarios.find(({ id }) => id === "always-500");
  const client = { ...openai({ can: [], settings: { maxRetries: 1 } }), name: "retries" };
  const [seen] = await play(place, client, scenario);
  const found = differences(scenario.expect, seen).join("; ");
  assert.match(found, /requests to primary: expected 2, seen 4/);
  assert.match(found, /x-stainless-retry-count: expected 0, seen 1/);
  assert.match(found, /4 requests with idempotency key/);
  const id = drillId(scenario, client.name);
  const counts = { [id]: (await stats(gateway.url))[id].count };
  assert.equal(hidden({ [id]: 2 }, counts).length, 1);
  assert.equal(hidden({ [id]: 4 }, counts).length, 0);
});

test("what a browser sends again by itself is forgiven there, and only where a connection was reset", async () => {
  const reset = scenarios.find(({ id }) => id === "reset");
  const [seen] = await play(place, { ...clients[0], name: "resends" }, reset);
  const { primary } = seen.requests;
  const again = { ...seen, requests: { ...seen.requests, primary: [...primary, primary[1]] } };
  assert.notDeepEqual(differences(reset.expect, again), []);
  assert.deepEqual(differences(reset.expect, { ...again, resends: true }), []);
  const other = { ...primary[1], "idempotency-key": "another" };
  const foreign = { ...again, resends: true, requests: { ...seen.requests, primary: [...primary, other] } };
  assert.notDeepEqual(differences(reset.expect, foreign), []);
});
