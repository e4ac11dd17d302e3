/** The engine of a compiled module. */
import type { Engine } from "../../bindings-node/driver/engine.js";
import * as glue from "../gen/engine_bg.js";

/** Instantiates the module: once, whoever asks. */
export function instantiate(module: WebAssembly.Module): Engine {
  const { exports } = new WebAssembly.Instance(module, { "./engine_bg.js": glue as unknown as WebAssembly.ModuleImports });
  glue.__wbg_set_wasm(exports);
  (exports.__wbindgen_start as () => void)();
  return glue;
}
