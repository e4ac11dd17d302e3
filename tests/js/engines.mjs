/** The engines that Node can have, each loaded when it is asked for. */
import { createRequire } from "node:module";

import { bundle } from "./bundle.mjs";
import { ROOT } from "./paths.mjs";

const ABIS = { linux: "-gnu", win32: "-msvc" };
const require = createRequire(import.meta.url);

export const engines = {
  native: async () => {
    const { platform, arch } = process;
    return require(`${ROOT}bindings-node/npm/${platform}-${arch}${ABIS[platform] ?? ""}/index.js`);
  },
  wasm: async () => {
    const folder = await bundle("wasm", ["bindings-wasm/entry/inlined.ts"], "node");
    return (await import(`${folder}inlined.mjs`)).load();
  },
};
