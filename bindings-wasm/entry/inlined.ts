/** The engine of the inlined module: compiled when it is first asked for. */
import type { Engine } from "../../bindings-node/driver/engine.js";
import base64 from "../gen/inlined.js";
import { instantiate } from "./engine.js";

export function load(): Engine {
  return instantiate(new WebAssembly.Module(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))));
}
