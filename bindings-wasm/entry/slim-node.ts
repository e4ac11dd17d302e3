/** As `slim`, in Node: the file is read, not fetched. */
import { readFile } from "node:fs/promises";

import { setInit } from "./init.js";

export * from "../../bindings-node/driver/index.js";
export { init, type Source } from "./init.js";

/** Which engine runs. */
export const engine: "native" | "wasm" = "wasm";

setInit(() => readFile(`${__dirname}/../reprieve.wasm`));
