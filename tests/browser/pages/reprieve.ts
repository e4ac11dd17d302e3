/** The package as a page gets it: the driver, and the engine inlined. */
import { load } from "../../../bindings-node/entry/wasm-engine.js";
import { setEngine } from "../../../bindings-node/driver/index.js";

setEngine(load);

export * from "../../../bindings-node/driver/index.js";
