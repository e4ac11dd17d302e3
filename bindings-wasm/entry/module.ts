/** The compiled module of the inlined bytes. */
import inlined from "../gen/inlined.js";

export function module(): WebAssembly.Module {
  return new WebAssembly.Module(Uint8Array.from(atob(inlined), (char) => char.charCodeAt(0)));
}
