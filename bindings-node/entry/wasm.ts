/** reprieve that insists on its wasm engine. */
import { choose } from "./choose.js";
import { loadWasm } from "./lazy.js";

export * from "../driver/index.js";

/** Which engine runs. */
export const engine: "native" | "wasm" = choose("wasm", loadWasm, true);
