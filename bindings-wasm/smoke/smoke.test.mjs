/** The packages in every place they are made for. What is not installed on this machine is skipped, by name. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { EdgeVM } from "@edge-runtime/vm";
import { chromium } from "playwright-core";
import { build as vite } from "vite";

import { serve } from "./server.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const DIST = fileURLToPath(new URL("../dist/", import.meta.url));
const { build } = createRequire(new URL("../../bindings-node/package.json", import.meta.url))("esbuild");

/** Longer than anything takes, however busy the machine. */
const PATIENCE_MS = 300_000;

const bin = (name) => `${HERE}node_modules/.bin/${name}`;

function command(name, ...args) {
  const { stdout, stderr, error } = spawnSync(name, args, {
    cwd: HERE,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
  });
  return error ? String(error) : stdout.trim() || stderr;
}

test("Node", async (t) => {
  for (const [name, engine] of [
    ["reprieve", "native"],
    ["reprieve-wasm", "wasm"],
    ["reprieve-wasm/slim", "wasm"],
  ]) {
    await t.test(name, () => assert.equal(command(process.execPath, "command.js", name), `${engine} fine 2`));
  }
  await t.test("reprieve-wasm as CommonJS", () => {
    const code =
      'const r = require("reprieve-wasm"); import("./check.js").then(({ check }) => check(r)).then(console.log)';
    assert.equal(command(process.execPath, "-e", code), "wasm fine 2");
  });
});

test("Deno", async (t) => {
  const deno = (...args) => command(bin("deno"), "run", "--quiet", "--no-prompt", "--node-modules-dir=manual", ...args);
  for (const name of ["reprieve-wasm", "reprieve-wasm/slim"]) {
    await t.test(name, () => assert.equal(deno("--allow-read", "command.js", name), "wasm fine 2"));
  }
  await t.test("reprieve", () => assert.equal(deno("--allow-all", "command.js", "reprieve"), "native fine 2"));
  await t.test("reprieve, which may load no addon", () => {
    assert.equal(deno("--allow-read", "--allow-env", "command.js", "reprieve"), "wasm fine 2");
  });
});

test("Bun", async (t) => {
  for (const [name, engine] of [
    ["reprieve", "native"],
    ["reprieve-wasm", "wasm"],
    ["reprieve-wasm/slim", "wasm"],
  ]) {
    await t.test(name, () => assert.equal(command(bin("bun"), "run", "command.js", name), `${engine} fine 2`));
  }
});

test("workerd, which compiles nothing", async () => {
  const folder = `${HERE}build/workerd/`;
  const conditions = ["workerd", "worker", "browser"];
  await build({
    entryPoints: { worker: `${HERE}fetch.js` },
    outdir: folder,
    bundle: true,
    format: "esm",
    conditions,
    external: ["*.wasm"],
  });
  copyFileSync(`${DIST}reprieve.wasm`, `${folder}reprieve.wasm`);
  const workerd = spawn(bin("workerd"), ["serve", "workerd.capnp", "--control-fd=3"], {
    cwd: HERE,
    stdio: ["ignore", "ignore", "inherit", "pipe"],
  });
  try {
    const port = await new Promise((resolve, reject) => {
      workerd.stdio[3].on("data", (line) => resolve(JSON.parse(line).port));
      workerd.on("exit", (code) => reject(new Error(`workerd ended with ${code}`)));
    });
    const response = await fetch(`http://127.0.0.1:${port}/`);
    assert.equal(await response.text(), "wasm fine 2");
  } finally {
    workerd.kill();
  }
});

test("edge-light, which compiles nothing and makes no code from text", async () => {
  const { outputFiles } = await build({
    entryPoints: [`${HERE}fetch.js`],
    bundle: true,
    format: "iife",
    globalName: "worker",
    conditions: ["edge-light", "browser"],
    write: false,
    // What the platform's bundler makes of it: a module that is there already.
    plugins: [{ name: "module", setup: asModule }],
  });
  const vm = new EdgeVM();
  vm.context.MODULE = new (vm.evaluate("WebAssembly.Module"))(readFileSync(`${DIST}reprieve.wasm`));
  vm.evaluate("WebAssembly.Module = WebAssembly.compile = () => { throw new Error('compiled here'); }");
  vm.evaluate(`${outputFiles[0].text}; globalThis.worker = worker;`);
  const response = await vm.evaluate("worker.default.fetch()");
  assert.equal(await response.text(), "wasm fine 2");
});

function asModule(build) {
  build.onResolve({ filter: /\.wasm\?module$/ }, () => ({ path: "module", namespace: "module" }));
  build.onLoad({ filter: /.*/, namespace: "module" }, () => ({ contents: "export default MODULE;" }));
}

test("what is packed", async (t) => {
  for (const name of ["bindings-node", "bindings-wasm"]) {
    const folder = fileURLToPath(new URL(`../../${name}`, import.meta.url));
    await t.test(`publint finds nothing in ${name}`, () => assert.match(command(bin("publint"), folder), /All good/));
    await t.test(`the types of ${name} are right`, () => {
      // A wasm file is imported, never required.
      const args = ["--pack", folder, "--profile", "node16", "--ignore-rules", "cjs-resolves-to-esm"];
      const { status, stdout } = spawnSync(bin("attw"), args, { encoding: "utf8" });
      assert.equal(status, 0, stdout);
    });
  }
});

const executablePath = ["/usr/bin/chromium", "/usr/bin/google-chrome"].find(existsSync);

test("Chromium", { skip: !executablePath && "no chromium is installed" }, async (t) => {
  const profile = mkdtempSync(join(tmpdir(), "reprieve-chromium-"));
  const flags =
    "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-component-update disable-sync";
  const args = flags.split(" ").map((flag) => `--${flag}`);
  const browser = await chromium.launchPersistentContext(profile, { executablePath, args, timeout: PATIENCE_MS });
  browser.setDefaultTimeout(PATIENCE_MS);

  async function seen(mounts, page) {
    const { server, address } = await serve(mounts);
    const tab = await browser.newPage();
    const faults = [];
    tab.on("pageerror", (fault) => faults.push(String(fault)));
    tab.on("console", (message) => faults.push(message.text()));
    try {
      await tab.goto(`${address}/${page}`);
      await tab.waitForFunction(() => globalThis.seen, undefined, { timeout: PATIENCE_MS });
      return await tab.evaluate(() => globalThis.seen);
    } catch (fault) {
      throw new Error(faults.join("\n"), { cause: fault });
    } finally {
      await tab.close();
      server.close();
    }
  }

  try {
    await t.test("a page without a bundler, and its worker", async () => {
      const found = await seen(
        [
          ["/dist/", DIST],
          ["/", HERE],
        ],
        "plain.html",
      );
      assert.deepEqual(found, ["wasm fine 2", "wasm fine 2", "wasm fine 2"]);
    });
    await t.test("a page through Vite, and its worker", async () => {
      const outDir = `${HERE}build/vite/`;
      const rolldownOptions = { input: `${HERE}app.html` };
      const worker = { format: "es" };
      await vite({
        root: HERE,
        logLevel: "warn",
        worker,
        build: { outDir, emptyOutDir: true, target: "es2022", rolldownOptions },
      });
      assert.deepEqual(await seen([["/", outDir]], "app.html"), ["wasm fine 2", "wasm fine 2", "wasm fine 2"]);
    });
  } finally {
    await browser.close();
    rmSync(profile, { recursive: true, force: true });
  }
});
