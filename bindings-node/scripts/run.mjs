/** What the build scripts share: where things are, and how commands run. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { deflateAsync } from "@gfx/zopfli";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const NODE = `${ROOT}bindings-node/`;
export const WASM = `${ROOT}bindings-wasm/`;
export const TARGET = `${process.env.CARGO_TARGET_DIR ?? `${ROOT}target`}/`;

/** Runs a command in the root of the repository; its output is shown, its failure ends the build. */
export function run(command, args, env = {}) {
  execFileSync(command, args, { cwd: ROOT, stdio: "inherit", env: { ...process.env, ...env } });
}

export function cargo(args, env = {}) {
  run("cargo", ["build", "--quiet", "--locked", ...args], env);
}

// Named one by one: with all of them the module asks for what no engine has yet.
const FEATURES = [
  "bulk-memory",
  "multivalue",
  "mutable-globals",
  "nontrapping-float-to-int",
  "reference-types",
  "sign-ext",
];

/**
 * Makes a wasm module small. Low memory is where the stack ends, and nothing else lies there: an offset can be part of
 * the instruction that reads or writes.
 */
export function optimize(module, out, options = ["--strip-producers"]) {
  const features = FEATURES.map((name) => `--enable-${name}`);
  const flags = ["-Oz", "--low-memory-unused", ...options, ...features];
  run(`${NODE}node_modules/binaryen/bin/wasm-opt`, [...flags, module, "-o", out]);
}

/** Bytes deflated as small as can be: by trying many ways, a twentieth smaller than by zlib. */
export function deflated(bytes) {
  return deflateAsync(bytes, { numiterations: 15 });
}

/** The types that a generator wrote, with the objects of the engine known by what the driver knows of them. */
export function asEngineTypes(text) {
  const named = text.replaceAll(/([:|] ?)(Policy|Call|Guards|Run)\b/g, "$1Engine$2");
  const names = ["EnginePolicy", "EngineCall", "EngineGuards", "EngineRun"].filter((name) => named.includes(name));
  return `import type { ${names.join(", ")} } from "../../bindings-node/driver/engine.js";\n${named}`;
}
