/** The native engine where it loads, the wasm engine where not: both decide the same. */
import type { Engine } from "../driver/engine.js";
import { loadAddon } from "./addon.js";
import { choose } from "./choose.js";
import { loadWasm } from "./lazy.js";

let addon: Engine | undefined;
try {
  addon = loadAddon();
} catch {
  // No package for this platform, or one that does not load. `reprieve/native` says which.
}

/** Which engine runs. */
export const engine: "native" | "wasm" = choose(addon ? "native" : "wasm", () => addon ?? loadWasm(), false);
