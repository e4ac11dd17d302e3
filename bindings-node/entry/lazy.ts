/** The wasm engine, in a file that is read when it is needed. */
import type { Engine } from "../driver/engine.js";

export function loadWasm(): Engine {
  return (require("./wasm-engine.js") as typeof import("../../bindings-wasm/entry/inlined.js")).load();
}
