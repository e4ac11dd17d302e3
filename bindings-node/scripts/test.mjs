/** Bundles the tests with what they test, and runs them: `node scripts/test.mjs [name ...]`. */
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";

import { build } from "esbuild";

import { NODE } from "./run.mjs";

const wanted = process.argv.slice(2);
const names = readdirSync(`${NODE}tests`)
  .filter((name) => name.endsWith(".test.ts"))
  .filter((name) => wanted.length === 0 || wanted.some((part) => name.includes(part)));

rmSync(`${NODE}build`, { recursive: true, force: true });
await build({
  entryPoints: names.map((name) => `${NODE}tests/${name}`),
  outdir: `${NODE}build`,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  sourcemap: true,
  logLevel: "warning",
});
const files = names.map((name) => `${NODE}build/${name.replace(".ts", ".js")}`);
const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit" });
process.exitCode = status ?? 1;
