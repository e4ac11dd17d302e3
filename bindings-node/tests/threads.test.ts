/** A guard set that worker threads share: one breaker, one time. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";

const ENTRY = new URL("../dist/node/index.js", import.meta.url).href;

const FIELDS = { maxAttempts: 1, breaker: { consecutiveFailures: 1, openFor: "5m" } };

/** Fails one call on the set of the token, and says what state its breaker is in then. */
const WORKER = `
  import { parentPort, workerData } from "node:worker_threads";
  const { Guards, Policy } = await import("${ENTRY}");
  const policy = new Policy(${JSON.stringify(FIELDS)});
  const guards = Guards.from(workerData);
  const fail = () => { throw Object.assign(new Error("down"), { status: 503 }); };
  await policy.bind({ guards }).call(fail).catch(() => {});
  parentPort.postMessage(guards.breakerState(policy));
  // The set lives on in the thread that shared it.`;

test("worker threads share a guard set", async () => {
  const { CircuitOpen, Guards, Policy } = (await import(ENTRY)) as typeof import("../entry/index.js");
  const policy = new Policy(FIELDS);
  const guards = new Guards();
  const token = guards.share();
  assert.equal(guards.share(), token);
  // A thread's own clock starts with the thread: what follows holds only if all count from one epoch.
  await sleep(1500);
  const before = performance.now();
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(WORKER)}`), { workerData: token });
  assert.deepEqual(await once(worker, "message"), ["open"]);
  await worker.terminate();
  assert.equal(guards.breakerState(policy), "open");
  const { breakers } = guards.describe() as { breakers: Record<string, { half_open_in_ms: number }> };
  const left = breakers.primary?.half_open_in_ms ?? 0;
  const least = 300_000 - (performance.now() - before) - 1;
  assert(least <= left && left <= 300_000, `half open in ${left} ms, not ${least} at least`);
  await assert.rejects(
    policy.bind({ guards }).call(() => "fine"),
    CircuitOpen,
  );
  assert.throws(() => Guards.from("elsewhere-1"), /the token of a set that is in use in this process/);
});
