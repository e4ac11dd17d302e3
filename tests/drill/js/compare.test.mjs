/** The comparison's requests are those that each client is known to make; its seconds are its own affair. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { TESTS } from "../../js/paths.mjs";

const CLIENTS = ["openai for npm", "@anthropic-ai/sdk", "fetch", "AI SDK"];
/** By failure: what every client makes under its policy, and what each makes bare. */
const REQUESTS = {
  "wrong key": [1, [1, 1, 1, 1]],
  "429, retry-after 2 s": [2, [2, 2, 1, 2]],
  "overloaded three times": [4, [3, 3, 1, 3]],
  "always 500, in a framework that tries 3 times": [3, [9, 9, 3, 9]],
  "connection lost amid a stream": [2, [1, 1, 1, 1]],
  "stream cut after content": [2, [1, 1, 1, 1]],
};
const FAILING = /wrong key|framework/;

test("the comparison", () => {
  const printed = execFileSync(process.execPath, [`${TESTS}drill/compare.mjs`], { encoding: "utf8" });
  const rows = printed
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.equal(rows.length, CLIENTS.length * Object.keys(REQUESTS).length * 2);
  for (const { client, failure, how, requests, saw } of rows) {
    const [under, bare] = REQUESTS[failure];
    const expected = how === "with" ? under : bare[CLIENTS.indexOf(client)];
    assert.equal(requests, expected, `${client}, ${failure}, ${how}`);
    if (how === "with") assert.equal(saw === "the answer", !FAILING.test(failure), `${client}, ${failure}: ${saw}`);
  }
});
