/**
 * Ours beside the peers, side by side in one run: what a retry costs when nothing, or one thing, goes wrong.
 *
 * Every round times each contender once, in turn, so that a noisy moment hits all of them; the best round of each counts.
 * Ratios are of overhead: the time above the bare function. A process has one engine: each runs in a process of its
 * own. Writes `target/bench/node.json`.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import asyncRetry from "async-retry";
import * as cockatiel from "cockatiel";
import { Effect } from "effect";
import { backOff } from "exponential-backoff";
import CircuitBreaker from "opossum";
import pRetry from "p-retry";

const ROUNDS = Number(process.env.ROUNDS ?? 15);
const OUT = new URL("../../target/bench/", import.meta.url);
const ROW = ["ns a call", "overhead", "x ours"];

const plain = async () => 1;

/** Fails every other time. */
function flaky() {
  let calls = 0;
  return async () => {
    calls += 1;
    if (calls % 2) throw new Error("busy");
    return 1;
  };
}

/** What people write: a loop around a `try`. */
async function handLoop(fn) {
  for (let attempt = 0; ; attempt++) {
    try {
      return await fn();
    } catch (error) {
      if (attempt === 2) throw error;
    }
  }
}

/** The same function under every library: three attempts, no waiting. */
function peers({ Policy }, fn) {
  const policy = new Policy({ backoff: { kind: "constant", base: 0 }, retryOn: ["unknown"] });
  const { retry, handleAll, ConstantBackoff } = cockatiel;
  const shark = retry(handleAll, { maxAttempts: 2, backoff: new ConstantBackoff(0) });
  const effect = Effect.retry(
    Effect.tryPromise(() => fn()),
    { times: 2 },
  );
  return {
    reprieve: () => policy.call(fn),
    cockatiel: () => shark.execute(fn),
    "async-retry": () => asyncRetry(fn, { retries: 2, minTimeout: 0, maxTimeout: 0 }),
    "exponential-backoff": () => backOff(fn, { numOfAttempts: 3, startingDelay: 0 }),
    effect: () => Effect.runPromise(effect),
    "p-retry": () => pRetry(fn, { retries: 2, minTimeout: 0, maxTimeout: 0 }),
  };
}

/** The same with a signal of the caller's, handed over call by call. To each its own: some leave listeners behind. */
function withSignal({ Policy, retry }) {
  const [ours, sharks, effects, theirs] = Array.from({ length: 4 }, () => new AbortController().signal);
  const policy = new Policy();
  const shark = cockatiel.retry(cockatiel.handleAll, { maxAttempts: 2 });
  const effect = Effect.retry(Effect.tryPromise(plain), { times: 2 });
  return {
    reprieve: () => retry(plain, policy, { signal: ours }),
    cockatiel: () => shark.execute(plain, sharks),
    effect: () => Effect.runPromise(effect, { signal: effects }),
    "p-retry": () => pRetry(plain, { retries: 2, signal: theirs }),
  };
}

/** A breaker in this process, closed. */
function withBreaker({ Breaker }) {
  const { circuitBreaker, handleAll, ConsecutiveBreaker } = cockatiel;
  const breaker = new Breaker();
  const shark = circuitBreaker(handleAll, { halfOpenAfter: 30_000, breaker: new ConsecutiveBreaker(5) });
  const opossum = new CircuitBreaker(plain);
  return {
    reprieve: () => breaker.call(plain),
    cockatiel: () => shark.execute(plain),
    opossum: () => opossum.fire(),
  };
}

/** The nanoseconds of one call, from as many as fit into the budget. */
async function time(call, budgetMs) {
  for (let number = 1; ; ) {
    const start = performance.now();
    for (let i = 0; i < number; i++) await call();
    const elapsed = performance.now() - start;
    if (elapsed >= budgetMs) return (elapsed / number) * 1e6;
    number = Math.max(number * 2, Math.floor((number * budgetMs) / Math.max(elapsed, 1e-3)));
  }
}

async function measure(contenders) {
  const best = {};
  for (let round = 0; round < ROUNDS; round++) {
    // Each round begins with another: who comes next collects the garbage of the one before.
    const order = Object.entries(contenders);
    order.push(...order.splice(0, round % order.length));
    for (const [name, call] of order) {
      best[name] = Math.min(best[name] ?? Number.POSITIVE_INFINITY, await time(call, 10));
    }
  }
  return best;
}

/** Prints a table, and answers its rows for the file. */
function table(title, best, bare) {
  const ours = best.reprieve;
  console.log(`\n${title}\n  ${"".padEnd(20)}${ROW.map((head) => head.padStart(12)).join("")}`);
  const rows = [];
  for (const [name, took] of Object.entries(best).sort(([, a], [, b]) => a - b)) {
    const ratio = (took - bare) / Math.max(ours - bare, 1e-9);
    const cells = [took, took - bare].map((ns) => Math.round(ns).toLocaleString("en").padStart(12));
    console.log(
      `  ${name.padEnd(20)}${cells.join("")}${ratio.toFixed(2).padStart(12)}${name === "reprieve" ? "  <" : ""}`,
    );
    if (name !== "reprieve" && name !== "plain") {
      rows.push({ name: title, ours_ns: ours, peer: name, peer_ns: took, bare_ns: bare, ratio });
    }
  }
  return rows;
}

async function run(engine) {
  const reprieve = await import(`../dist/node/${engine}.js`);
  const best = await measure({ plain, "hand loop": () => handLoop(plain), ...peers(reprieve, plain) });
  const bare = best.plain;
  const once = flaky();
  return [
    ...table(`success, ${engine}`, best, bare),
    ...table(`success with a signal, ${engine}`, await measure(withSignal(reprieve)), bare),
    ...table(`success with a breaker, ${engine}`, await measure(withBreaker(reprieve)), bare),
    ...table(
      `one failure, then success, ${engine}`,
      await measure({ "hand loop": () => handLoop(once), ...peers(reprieve, once) }),
      0,
    ),
  ];
}

const [engine] = process.argv.slice(2);
mkdirSync(OUT, { recursive: true });
if (engine) {
  writeFileSync(new URL(`node-${engine}.json`, OUT), `${JSON.stringify(await run(engine), null, 1)}\n`);
} else {
  const { readFileSync, rmSync } = await import("node:fs");
  const rows = ["native", "wasm"].flatMap((name) => {
    execFileSync(process.execPath, [fileURLToPath(import.meta.url), name], { stdio: "inherit" });
    const part = new URL(`node-${name}.json`, OUT);
    const read = JSON.parse(readFileSync(part, "utf8"));
    rmSync(part);
    return read;
  });
  const out = new URL("node.json", OUT);
  writeFileSync(out, `${JSON.stringify(rows, null, 1)}\n`);
  console.log(`\nwritten to ${fileURLToPath(out)}`);
}
