/** reprieve over its wasm engine as a file of its own: `await init()` before the first policy. */
import { setInit } from "./init.js";

export * from "../../bindings-node/driver/index.js";
export { init, type Source } from "./init.js";

/** Which engine runs. */
export const engine: "native" | "wasm" = "wasm";

setInit(() => new URL("./reprieve.wasm", import.meta.url));
