/** The engine of a compiled module. */
import type { Engine } from "../../bindings-node/driver/engine.js";
import * as glue from "../gen/engine_bg.js";

let instantiated = false;

/** Instantiates the module. Once, whoever asks: the glue speaks with one instance, whose memory its objects are in. */
export function instantiate(module: WebAssembly.Module): Engine {
  if (!instantiated) {
    const imports = { "./engine_bg.js": glue as unknown as WebAssembly.ModuleImports };
    const { exports } = new WebAssembly.Instance(module, imports);
    glue.__wbg_set_wasm(exports);
    (exports.__wbindgen_start as () => void)();
    instantiated = true;
  }
  return glue;
}
