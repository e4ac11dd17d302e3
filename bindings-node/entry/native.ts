/** reprieve that insists on its native engine: throws where it does not load. */
import { loadAddon } from "./addon.js";
import { choose } from "./choose.js";

export * from "../driver/index.js";

const addon = loadAddon();

/** Which engine runs. */
export const engine: "native" | "wasm" = choose("native", () => addon, true);
