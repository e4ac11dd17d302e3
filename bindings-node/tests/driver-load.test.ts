/** When the engine is loaded, and what a call comes to when it cannot be. */
import assert from "node:assert/strict";
import { mock, test } from "node:test";

import {
  AttemptTimeout,
  CircuitOpen,
  ConfigError,
  engineFault,
  Policy,
  RetryError,
  ready,
  retry,
  retryStream,
  setEngine,
  wrapFetch,
} from "../driver/index.js";
import { engines } from "./engines.js";
import { never, thrown } from "./setup.js";

test("an engine that does not load: one attempt each, the caller's own errors, one warning", async () => {
  const warned = mock.method(console, "warn", () => {});
  const cause = new Error("blocked by a policy");
  setEngine(() => {
    throw cause;
  });
  const policy = new Policy({ maxAttempts: -1 });
  const own = new Error("own");
  assert.equal(await policy.call(async (attempt) => attempt.number), 1);
  assert.equal(await thrown(policy.call(() => Promise.reject(own))), own);
  assert.equal(await thrown(retry(() => Promise.reject(own), {}, { scene: "x" })), own);
  assert.equal(
    await thrown(retry(never, {}, { signal: AbortSignal.timeout(5) })).then((error) => error.name),
    "TimeoutError",
  );
  assert.deepEqual([(await policy.execute(() => Promise.reject(own))).error, await policy.start(() => 5)], [own, 5]);
  assert.equal(engineFault()?.cause, cause);
  assert.equal(warned.mock.callCount(), 1);
  await assert.rejects(ready(), engineFault());
  // What was made without an engine is checked once there is one.
  setEngine(() => engines.wasm as never);
  await ready();
  assert((await thrown(policy.call(async () => 1))) instanceof ConfigError);
  warned.mock.restore();
});

test("streams and requests without an engine: one attempt each, as they would be without us", async () => {
  const warned = mock.method(console, "warn", () => {});
  setEngine(() => {
    throw new Error("blocked by a policy");
  });
  const own = new Error("own");
  let attempts = 0;
  const seen: unknown[] = [];
  const stream = retryStream(async function* () {
    attempts += 1;
    yield "a";
    throw own;
  }, {});
  await assert.rejects(async () => {
    for await (const item of stream) seen.push(item);
  }, own);
  assert.deepEqual([seen, attempts], [["a"], 1]);
  const answers = [new Response("no", { status: 503 }), new Response("yes")];
  const fetch = wrapFetch(async () => answers.shift() as Response);
  assert.deepEqual(await Promise.all([(await fetch()).status, (await fetch()).text()]), [503, "yes"]);
  warned.mock.restore();
});

test("nothing of the engine is asked for before it is needed", async () => {
  let loads = 0;
  setEngine(() => {
    loads += 1;
    return engines.wasm as never;
  });
  assert.equal(loads, 0);
  const policy = new Policy();
  await policy.call(async () => 1);
  assert.equal(loads, 1);
});

test("errors are known by their brand, also those of another copy", () => {
  const other = new Error("of another copy");
  Object.defineProperty(other, Symbol.for("reprieve.CircuitOpen"), { value: true });
  assert(other instanceof CircuitOpen);
  assert(!(other instanceof AttemptTimeout));
  class Mine extends RetryError {}
  assert(new Mine() instanceof RetryError && !(new RetryError() instanceof Mine));
  assert(!((undefined as unknown) instanceof RetryError));
  assert.equal(String(new CircuitOpen("x")), "CircuitOpen: x");
});
