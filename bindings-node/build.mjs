/** Builds the package in place: the addon for this platform, and `dist/`. The wasm engine was built before. */
import { copyFileSync, rmSync } from "node:fs";

import { commonJs, integrations, modules, types } from "./scripts/bundle.mjs";
import { NODE, WASM } from "./scripts/run.mjs";

import "./scripts/native.mjs";

const DIST = `${NODE}dist/`;
const entry = (...names) => names.map((name) => `${NODE}entry/${name}.ts`);
const wasmEntry = (...names) => names.map((name) => `${WASM}entry/${name}.ts`);
const inNode = entry("index", "native", "wasm", "testing", "context");
const elsewhere = wasmEntry("index", "workerd", "edge-light", "testing", "context");
const others = ["ai-sdk", "langchain"].map((name) => `${NODE}integrations/${name}.ts`);

rmSync(DIST, { recursive: true, force: true });
await modules(`${DIST}wasm/`, elsewhere);
await commonJs(DIST, inNode, [{ name: "wasm-engine", file: `${WASM}entry/inlined.ts` }]);
await integrations(DIST, others);
types(DIST, [...inNode, ...elsewhere, ...others]);
copyFileSync(`${WASM}gen/engine.wasm`, `${DIST}wasm/reprieve.wasm`);
