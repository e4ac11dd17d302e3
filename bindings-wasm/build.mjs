/** Builds the wasm module and its glue into `gen/`, and the package into `dist/`. */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

import { commonJs, modules, types, vendored } from "../bindings-node/scripts/bundle.mjs";
import { asEngineTypes, cargo, deflated, optimize, run, TARGET, WASM } from "../bindings-node/scripts/run.mjs";

const GEN = `${WASM}gen/`;
const TRIPLE = "wasm32-unknown-unknown";

/**
 * With the sources of `std` at hand it is built along, for size and without a word about panics: a ninth less. That
 * takes flags which a stable compiler has only when it is asked to be its own bootstrap.
 */
function buildModule() {
  const args = ["-p", "reprieve-wasm", "--target", TRIPLE, "--profile", "wasm"];
  const sysroot = execFileSync("rustc", ["--print", "sysroot"], { encoding: "utf8" }).trim();
  if (!existsSync(`${sysroot}/lib/rustlib/src/rust/library/Cargo.lock`)) {
    console.warn("no sources of std here (rustup component add rust-src): the module is a ninth larger");
    return cargo(args);
  }
  const std = ["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"];
  // Several values from one function take more code here than a place in memory for them.
  const flags =
    "-Zunstable-options -Cpanic=immediate-abort -Zlocation-detail=none -Zfmt-debug=none -Ctarget-feature=-multivalue";
  cargo([...std, ...args], { RUSTC_BOOTSTRAP: "1", CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS: flags });
}

rmSync(GEN, { recursive: true, force: true });
mkdirSync(GEN, { recursive: true });
buildModule();
cargo(["-p", "reprieve-wasm-tool"]);
run(`${TARGET}debug/reprieve-wasm-tool`, [`${TARGET}${TRIPLE}/wasm/reprieve_wasm.wasm`, GEN]);
optimize(`${GEN}engine_bg.wasm`, `${GEN}engine.wasm`);

const written = asEngineTypes(readFileSync(`${GEN}engine.d.ts`, "utf8"));
writeFileSync(
  `${GEN}engine_bg.d.ts`,
  `${written}export function __wbg_set_wasm(exports: WebAssembly.Exports): void;\n`,
);
const module = readFileSync(`${GEN}engine.wasm`);
const inlined = Buffer.from(await deflated(module)).toString("base64");
writeFileSync(`${GEN}inlined.js`, `export const deflated = "${inlined}";\nexport const size = ${module.length};\n`);
writeFileSync(`${GEN}inlined.d.ts`, "export declare const deflated: string;\nexport declare const size: number;\n");

await vendored("inflateSync", "fflate", `${GEN}inflate.js`);
const inflated =
  "export declare function inflateSync(data: Uint8Array, options: { out: Uint8Array }): Uint8Array<ArrayBuffer>;\n";
writeFileSync(`${GEN}inflate.d.ts`, inflated);

const DIST = `${WASM}dist/`;
const entry = (...names) => names.map((name) => `${WASM}entry/${name}.ts`);
const everywhere = entry("index", "slim", "workerd", "edge-light", "testing", "context");
const inNode = entry("index", "slim-node", "testing", "context");

rmSync(DIST, { recursive: true, force: true });
await modules(DIST, everywhere);
await commonJs(DIST, inNode);
types(DIST, [...everywhere, ...inNode]);
copyFileSync(`${GEN}engine.wasm`, `${DIST}reprieve.wasm`);
writeFileSync(`${DIST}reprieve.wasm.d.ts`, "declare const module: WebAssembly.Module;\nexport default module;\n");
