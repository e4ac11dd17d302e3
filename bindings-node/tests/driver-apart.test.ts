/** Where a timer ends with the request that set it, each attempt and each wait has one of its own. */
import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { AttemptTimeout, Policy, setEngine } from "../driver/index.js";
import { engines } from "./engines.js";

Object.defineProperty(globalThis, "navigator", { value: { userAgent: "Cloudflare-Workers" }, configurable: true });
setEngine(() => engines.wasm as never);

test("no two calls share a timer, and each is taken back", async () => {
  const set = mock.method(globalThis, "setTimeout");
  const cleared = mock.method(globalThis, "clearTimeout");
  const policy = new Policy({ attemptTimeout: 20, maxAttempts: 2, backoff: { base: 5 }, jitter: { kind: "none" } });
  await Promise.all(Array.from({ length: 50 }, () => policy.call(async () => 1)));
  assert.deepEqual([set.mock.callCount(), cleared.mock.callCount()], [50, 50]);
  const results = await Promise.all(Array.from({ length: 20 }, () => policy.execute(() => new Promise(() => {}))));
  for (const { error, attempts } of results) assert.deepEqual([error instanceof AttemptTimeout, attempts], [true, 2]);
  // Some fire early, and are set again.
  assert(set.mock.callCount() >= 50 + 20 * 3);
});
