/** Both engines, as the driver gets them; the compiler checks each against what the driver asks for. */
import { createRequire } from "node:module";

import { load } from "../../bindings-wasm/entry/inlined.js";
import type { Engine } from "../driver/engine.js";
import type * as addon from "../gen/native.js";

const require = createRequire(import.meta.url);

const native: typeof addon = require("../npm/linux-x64-gnu/index.js");

export const engines: Record<string, Engine> = { native, wasm: load() };
