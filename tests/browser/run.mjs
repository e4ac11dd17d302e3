/**
 * The package in a real Chromium: the vectors through the engine and under the driver, the identity scripts, and what a
 * page needs of it: a plain module, a worker, content security policies, no long task, streams of real clients.
 *
 *     node tests/browser/run.mjs [--identity FILE] [--only CHECK]
 *
 * Prints a line for each check, and for FILE (the scripts that `core/examples/identity.rs` wrote) the line with the hash.
 * Needs `npm ci` in `tests`, the wasm module and the gateway built (`make wasm gateway`) and a Chromium (`apt-get install
 * chromium`). Exits with 1 if a check fails.
 */
import assert from "node:assert/strict";
import { basename, dirname } from "node:path";
import { parseArgs } from "node:util";

import { openGateway } from "../drill/node/places.mjs";
import { bundle } from "../js/bundle.mjs";
import { deadline } from "../js/deadline.mjs";
import { ROOT, TARGET, TESTS } from "../js/paths.mjs";
import { launch } from "./chromium.mjs";
import { serve } from "./server.mjs";
import { forPages } from "./shims/plugin.mjs";

const { values: options } = parseArgs({ options: { identity: { type: "string" }, only: { type: "string" } } });

const WASM = "script-src 'self' 'wasm-unsafe-eval'; object-src 'none'";
const NO_WASM = "script-src 'self'; object-src 'none'";
/** What is longer makes a page stutter. A busy machine makes a task longer, never shorter: it is told, and not held. */
const LONG_TASK_MS = 50;
/** One quiet load out of so many shows how long the tasks are. */
const LOADS = 8;

/** Each check gets a function that opens pages; what a page's console complains about fails it. */
const checks = {
  async "plain module"(open) {
    let longest = Number.POSITIVE_INFINITY;
    let first = Number.POSITIVE_INFINITY;
    for (let load = 0; load < LOADS && longest > LONG_TASK_MS; load += 1) {
      const page = await open("module");
      const seen = await page.evaluate("firstCall()");
      assert.deepEqual({ value: seen.value, attempts: seen.attempts }, { value: "fine", attempts: 2 });
      assert.deepEqual(await page.evaluate("givesUp()"), { same: true, reason: "not_retryable" });
      longest = Math.min(longest, seen.longest);
      first = Math.min(first, seen.ms);
    }
    const tasks = longest > LONG_TASK_MS ? `a task of ${longest.toFixed(0)} ms` : `no task over ${LONG_TASK_MS} ms`;
    return `the first call ${first.toFixed(0)} ms, compilation included; ${tasks}`;
  },

  async worker(open) {
    const page = await open("worker");
    assert.deepEqual(await page.evaluate("inWorker()"), { value: "fine", attempts: 3 });
  },

  async "module as a file"(open) {
    const page = await open("slim");
    const { failed, ...seen } = await page.evaluate("seen");
    assert.match(failed, /nowhere\.wasm answered 404/);
    assert.deepEqual(seen, { without: ["own", 1], both: "loaded", loaded: ["fine", 2] });
    page.complaints = page.complaints.filter((said) => !/404|nowhere/.test(said));
    return "a load that fails costs the retries and no more; asked twice, it loads once";
  },

  async "policy with wasm-unsafe-eval"(open) {
    const page = await open("csp", WASM);
    const { own, attempts, reason, fault } = await page.evaluate("seen");
    assert.deepEqual(
      { own, attempts, reason, fault },
      { own: true, attempts: 2, reason: "attempts_exhausted", fault: "undefined" },
    );
    return WASM;
  },

  async "policy without it"(open) {
    const page = await open("csp", NO_WASM);
    const { own, attempts, note } = await page.evaluate("seen");
    assert.deepEqual({ own, attempts }, { own: true, attempts: 1 });
    assert.match(note, /the engine does not load/);
    // Chromium says so too, and that is no complaint about us.
    page.complaints = page.complaints.filter((said) => !/WebAssembly/.test(said));
    return `the caller's own error, with a note: ${note}`;
  },

  async offline(open) {
    const page = await open("offline");
    await page.evaluate("loaded");
    try {
      await page.context().setOffline(true);
      await page.evaluate("start(300_000)");
      await page.waitForTimeout(500);
      assert.equal(await page.evaluate("attempts"), 1, "an attempt was burnt");
      await page.context().setOffline(false);
      const { value, attempts, latency } = await page.evaluate("end()");
      assert.deepEqual({ value, attempts }, { value: 200, attempts: 2 });
      await page.context().setOffline(true);
      await page.evaluate("start(700)");
      const end = await page.evaluate("end()");
      assert.deepEqual([end.stopReason, end.attempts], ["deadline_exceeded", 1]);
      return `the wait went on until the browser was online again, ${latency} ms, or the deadline, ${end.latency} ms`;
    } finally {
      await page.context().setOffline(false);
    }
  },

  async streams(open) {
    const gateway = await openGateway(`${TARGET}release/gateway`);
    try {
      const page = await open("streams");
      await page.waitForFunction("globalThis.playStreams");
      const { played, failures } = await page.evaluate((url) => globalThis.playStreams(url), gateway.url);
      failures.push(...(await page.evaluate((url) => globalThis.playInWorker(url), gateway.url)).failures);
      assert.equal(failures.length, 0, `\n${failures.join("\n")}`);
      // What was asked for failed, as it was meant to; Chromium says so of each.
      page.complaints = page.complaints.filter((said) => !/Failed to load resource|failed$/.test(said));
      return `${played} cases, with fetch and both clients, on the page and in a worker`;
    } finally {
      gateway.close();
    }
  },

  async vectors(open) {
    const page = await open("vectors");
    const results = await page.evaluate("runAll()");
    const failed = results.filter(({ failure }) => failure !== undefined);
    assert.equal(failed.length, 0, failed.map(({ name, failure }) => `${name}: ${failure}`).join("\n"));
    assert(results.length > 0);
    return results.flatMap(({ told }) => told.map((line) => `\n    ${line}`)).join("");
  },

  async identity(open) {
    if (!options.identity) return "left out: no scripts were given";
    const page = await open("identity");
    const line = await page.evaluate(`identity("/identity/${basename(options.identity)}")`);
    console.log(line);
  },
};

deadline(900);
const source = (name) => `tests/browser/pages/${name}.mjs`;
const folders = {
  "/js/vectors/": await bundle("vectors", [source("vectors")], "browser", { plugins: [forPages] }),
  "/js/pages/": await bundle("pages", ["csp", "worker", "identity", "streams"].map(source)),
  "/reprieve-wasm/": `${ROOT}bindings-wasm/dist/`,
  "/pages/": `${TESTS}browser/pages/`,
  "/tests/vectors/": `${TESTS}vectors/`,
  ...(options.identity && { "/identity/": `${dirname(options.identity)}/` }),
};

const server = await serve(folders);
const browser = await launch();
let failures = 0;
try {
  for (const [name, check] of Object.entries(checks)) {
    if (options.only && options.only !== name) continue;
    failures += (await passes(name, check)) ? 0 : 1;
  }
} finally {
  await browser.close();
  server.close();
}
process.exitCode = failures ? 1 : 0;

async function passes(name, check) {
  const pages = [];
  const open = async (page, csp) => {
    const query = csp ? `?csp=${encodeURIComponent(csp)}` : "";
    pages.push(await browser.open(`${server.url}/pages/${page}.html${query}`));
    return pages.at(-1);
  };
  try {
    const told = await check(open);
    for (const page of pages) assert.deepEqual(page.complaints, []);
    if (!(name === "identity" && options.identity)) console.log(`chromium, ${name}: fine${told ? `; ${told}` : ""}`);
    return true;
  } catch (error) {
    console.log(`chromium, ${name}: FAILED: ${error.message}`);
    for (const page of pages) for (const said of page.complaints) console.log(`    the console: ${said}`);
    return false;
  } finally {
    for (const page of pages) await page.close();
  }
}
