/** reprieve for edge-light, where a module is imported: nothing may be compiled there. */

import { setEngine } from "../../bindings-node/driver/load.js";
import { instantiate } from "./engine.js";
import module from "./reprieve.wasm?module";

export * from "../../bindings-node/driver/index.js";

/** Which engine runs. */
export const engine: "native" | "wasm" = "wasm";

/** Nothing to do here: the module is there. As in `slim`. */
export async function init(): Promise<void> {}

setEngine(() => instantiate(module));
