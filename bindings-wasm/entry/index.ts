/** reprieve over its wasm engine, which is inlined and needs no `await`. */
import { setEngine } from "../../bindings-node/driver/load.js";
import { load } from "./inlined.js";

export * from "../../bindings-node/driver/index.js";

/** Which engine runs. */
export const engine: "native" | "wasm" = "wasm";

setEngine(load);
