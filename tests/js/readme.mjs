/**
 * The JavaScript of the READMEs, as a reader would run it: against the fault gateway, in Node and in Chromium.
 *
 *     node tests/js/readme.mjs
 *
 * The `js` blocks of a page are one module, in a process of its own. A `html` block is a page in Chromium, under the
 * content security policy that the README asks for. Where a `text` block comes next, that is what a block prints, or
 * what its page shows; numbers, ids and bars may differ. Needs `npm ci` in `tests`, `make node gateway` and a Chromium.
 * Prints what differs, and how many passed and failed; exits with 1 if any failed.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

import { launch } from "../browser/chromium.mjs";
import { serve } from "../browser/server.mjs";
import { openGateway } from "../drill/node/places.mjs";
import { deadline } from "./deadline.mjs";
import { ROOT, TARGET, TESTS } from "./paths.mjs";

const PAGES = ["README.md", "bindings-node/README.md", "bindings-wasm/README.md"];
const FENCE = /^```(\w*)\n(.*?)^```$/gms;
const OUT = `${TARGET}js/readme/`;
/** What the blocks import, where npm would have put it. */
const PACKAGES = {
  reprieve: `${ROOT}bindings-node`,
  "reprieve-wasm": `${ROOT}bindings-wasm`,
  openai: `${TESTS}node_modules/openai`,
};
/** Stands in the output where a block begins. */
const MARK = "\u0001";
const PATIENCE_MS = 120_000;
/** A page may run so often: an example that shows a moment may miss it on a busy machine. */
const RUNS = 3;

deadline(600);
layOut();
const gateway = await openGateway(`${TARGET}release/gateway`);
const failures = [];
let passed = 0;
try {
  for (const page of PAGES) await inNode(page);
  await inChromium();
} finally {
  gateway.close();
}
for (const failure of failures) console.log(failure);
console.log(`${passed} passed, ${failures.length} failed`);
process.exitCode = failures.length > 0 || passed === 0 ? 1 : 0;

/** The page's blocks of a language, each with the text block that comes next, before any other block. */
function examples(page, language) {
  const text = readFileSync(ROOT + page, "utf8");
  const blocks = [...text.matchAll(FENCE)].map(([, of, code], i, all) => ({ of, code, at: all[i].index }));
  return blocks.flatMap(({ of, code, at }, i) => {
    const next = blocks[i + 1];
    const line = text.slice(0, at).split("\n").length + 1;
    return of === language ? [{ page, line, code, expected: next?.of === "text" ? next.code : undefined }] : [];
  });
}

/** What stays the same from run to run. */
function shape(printed) {
  return printed
    .replaceAll(/\|[ █·]+\|/g, "|...|")
    .replaceAll(/\b[0-9a-f]{32}\b/g, "ID")
    .replaceAll(/\d+\.\d+(?= s\b)/g, "N")
    .trimEnd();
}

/** What is wrong with an example, if anything. */
function faultsOf({ page, line, expected }, printed, fault = "") {
  const differs = expected !== undefined && shape(printed) !== shape(expected);
  if (!fault && !differs) return [];
  const seen = differs ? `it should print:\n${expected}it prints:\n${printed}` : "";
  return [`${page}:${line}: FAILED\n${seen}${fault}`];
}

function counted(faults, of) {
  failures.push(...faults);
  passed += of - faults.length;
}

/** Every line of the module is where it is in the page, so that an error names it. */
async function inNode(page) {
  const found = examples(page, "js");
  if (found.length === 0) return;
  const lines = [];
  for (const { line, code } of found) {
    while (lines.length < line - 2) lines.push("");
    lines.push(`console.log("\\u0001");`, ...code.trimEnd().split("\n"));
  }
  const file = `${OUT}${page.replaceAll(/\W/g, "-")}.mjs`;
  writeFileSync(file, lines.join("\n"));
  let faults = [];
  for (let i = 0; i < RUNS; i++) {
    faults = await faultsIn(file, found);
    if (faults.length === 0) break;
  }
  counted(faults, found.length);
}

async function faultsIn(file, found) {
  await forget();
  const { output, errors, status } = await run(file);
  const printed = output.split(`${MARK}\n`).slice(1);
  return found.flatMap((example, i) => {
    const fault = status && i >= printed.length - 1 ? (i >= printed.length ? "not reached\n" : errors) : "";
    return faultsOf(example, printed[i] ?? "", fault);
  });
}

function run(file) {
  const env = { ...process.env, OPENAI_BASE_URL: `${gateway.url}/v1`, OPENAI_API_KEY: "none" };
  const child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (output += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (errors += text));
  return new Promise((resolve) => {
    child.on("close", (status) => resolve({ output, errors, status: status !== 0 }));
  });
}

async function inChromium() {
  const found = PAGES.flatMap((page) => examples(page, "html"));
  const server = await serve({ "/v1/": gateway.url, "/": OUT });
  const browser = await launch();
  try {
    for (const [i, example] of found.entries()) {
      writeFileSync(`${OUT}${i}.html`, example.code);
      await forget();
      const tab = await browser.open(`${server.url}/${i}.html?csp=${encodeURIComponent(policyOf(example.code))}`);
      const shown = await shows(tab, example.expected);
      // A status that is not 2xx is no complaint about a page that expects it.
      const complaints = tab.complaints.filter((said) => !/the server responded with a status of/.test(said));
      counted(faultsOf(example, shown, complaints.join("\n")), 1);
      await tab.close();
    }
  } finally {
    await browser.close();
    server.close();
  }
}

/** Its own scripts, wasm, and the scripts that stand in the page: no others. */
function policyOf(html) {
  const scripts = [...html.matchAll(/<script[^>]*>(.*?)<\/script>/gs)].map(([, code]) => code);
  const hashes = scripts.map((code) => `'sha256-${createHash("sha256").update(code).digest("base64")}'`);
  return `default-src 'self'; script-src 'self' 'wasm-unsafe-eval' ${hashes.join(" ")}`;
}

/** What the page shows once that is what it should, or when patience has run out. */
async function shows(tab, expected) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const text = `${await tab.evaluate("document.body.innerText")}\n`;
    if (expected === undefined || shape(text) === shape(expected) || Date.now() > end) return text;
    await pause(50);
  }
}

/** A marker's list begins anew: each page is one reader's. */
function forget() {
  return fetch(`${gateway.url}/__reset`, { method: "POST" });
}

function layOut() {
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(`${OUT}node_modules`, { recursive: true });
  for (const [name, folder] of Object.entries(PACKAGES)) symlinkSync(folder, `${OUT}node_modules/${name}`);
}
