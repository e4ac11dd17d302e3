/** Builds the wasm module and its glue into `gen/`. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

import { asEngineTypes, cargo, NODE, run, TARGET, WASM } from "../bindings-node/scripts/run.mjs";

const GEN = `${WASM}gen/`;
// Named one by one: with `--all-features` the module asks for what no engine has yet.
const FEATURES = ["bulk-memory", "multivalue", "mutable-globals", "nontrapping-float-to-int", "reference-types", "sign-ext"];

rmSync(GEN, { recursive: true, force: true });
mkdirSync(GEN, { recursive: true });
cargo(["-p", "reprieve-wasm", "--target", "wasm32-unknown-unknown", "--profile", "wasm"]);
cargo(["-p", "reprieve-wasm-tool"]);
run(`${TARGET}debug/reprieve-wasm-tool`, [`${TARGET}wasm32-unknown-unknown/wasm/reprieve_wasm.wasm`, GEN]);
run(`${NODE}node_modules/binaryen/bin/wasm-opt`, [
  "-Oz",
  "--strip-producers",
  ...FEATURES.map((name) => `--enable-${name}`),
  `${GEN}engine_bg.wasm`,
  "-o",
  `${GEN}engine.wasm`,
]);

const types = asEngineTypes(readFileSync(`${GEN}engine.d.ts`, "utf8"));
writeFileSync(`${GEN}engine_bg.d.ts`, `${types}export function __wbg_set_wasm(exports: WebAssembly.Exports): void;\n`);
const base64 = readFileSync(`${GEN}engine.wasm`).toString("base64");
writeFileSync(`${GEN}inlined.js`, `export default "${base64}";\n`);
writeFileSync(`${GEN}inlined.d.ts`, "declare const base64: string;\nexport default base64;\n");
