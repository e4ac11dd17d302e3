/** Timers keep a process alive as long as a call is under way, and not a moment longer. Each case is a process. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { AttemptTimeout, Policy, retry, setEngine } from "../driver/index.js";
import { engines } from "./engines.js";
import { never } from "./setup.js";

const fails = (): never => {
  throw Object.assign(new Error("down"), { status: 500 });
};

const cases: Record<string, () => Promise<unknown>> = {
  "a call that has ended leaves nothing behind": () => retry(async () => 1, { attemptTimeout: "1h" }),
  "so does one that has waited": async () => {
    let calls = 0;
    await retry(() => (++calls > 1 ? 1 : fails()), { backoff: { base: 5 }, attemptTimeout: "1h" });
  },
  "an attempt that never settles is waited for until its timeout": async () => {
    const error = await retry(never, { attemptTimeout: 30, maxAttempts: 1 }).catch((thrown) => thrown);
    assert(error instanceof AttemptTimeout);
  },
  "a wait is waited for": async () => {
    const result = await new Policy({ backoff: { base: 30 }, jitter: { kind: "none" }, maxAttempts: 2 }).execute(fails);
    assert.equal(result.attempts, 2);
  },
};

const [chosen] = process.argv.slice(2);
if (chosen) {
  setEngine(() => engines.wasm as never);
  await cases[chosen]?.();
  console.log("ended");
} else {
  for (const name of Object.keys(cases)) {
    test(name, () => {
      const { stdout, stderr, status } = spawnSync(process.execPath, [fileURLToPath(import.meta.url), name], {
        timeout: 300_000,
        encoding: "utf8",
      });
      assert.deepEqual([stdout, stderr, status], ["ended\n", "", 0]);
    });
  }
}
