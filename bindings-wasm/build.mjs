/** Builds the wasm module and its glue into `gen/`, and the package into `dist/`. */
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

import { commonJs, modules, types } from "../bindings-node/scripts/bundle.mjs";
import { asEngineTypes, cargo, optimize, run, TARGET, WASM } from "../bindings-node/scripts/run.mjs";

const GEN = `${WASM}gen/`;

rmSync(GEN, { recursive: true, force: true });
mkdirSync(GEN, { recursive: true });
cargo(["-p", "reprieve-wasm", "--target", "wasm32-unknown-unknown", "--profile", "wasm"]);
cargo(["-p", "reprieve-wasm-tool"]);
run(`${TARGET}debug/reprieve-wasm-tool`, [`${TARGET}wasm32-unknown-unknown/wasm/reprieve_wasm.wasm`, GEN]);
optimize(`${GEN}engine_bg.wasm`, `${GEN}engine.wasm`);

const written = asEngineTypes(readFileSync(`${GEN}engine.d.ts`, "utf8"));
writeFileSync(`${GEN}engine_bg.d.ts`, `${written}export function __wbg_set_wasm(exports: WebAssembly.Exports): void;\n`);
const base64 = readFileSync(`${GEN}engine.wasm`).toString("base64");
writeFileSync(`${GEN}inlined.js`, `export default "${base64}";\n`);
writeFileSync(`${GEN}inlined.d.ts`, "declare const base64: string;\nexport default base64;\n");

const DIST = `${WASM}dist/`;
const entry = (...names) => names.map((name) => `${WASM}entry/${name}.ts`);
const everywhere = entry("index", "slim", "workerd", "edge-light", "testing");
const inNode = entry("index", "slim-node", "testing");

rmSync(DIST, { recursive: true, force: true });
await modules(DIST, everywhere);
await commonJs(DIST, inNode);
types(DIST, [...everywhere, ...inNode]);
copyFileSync(`${GEN}engine.wasm`, `${DIST}reprieve.wasm`);
