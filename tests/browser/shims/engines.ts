/** The one engine of a browser, for the vectors' runners. */
import type { Engine } from "../../../bindings-node/driver/engine.js";
import { load } from "../../../bindings-wasm/entry/inlined.js";

export const engines: Record<string, Engine> = { chromium: load() };
