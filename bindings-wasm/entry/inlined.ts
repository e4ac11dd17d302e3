/**
 * The engine of the inlined module: inflated and compiled when it is first asked for. By a library, because
 * `DecompressionStream` would make the first use wait.
 */

import type { Engine } from "../../bindings-node/driver/engine.js";
import { inflateSync } from "../gen/inflate.js";
import { deflated, size } from "../gen/inlined.js";
import { instantiate } from "./engine.js";

export function load(): Engine {
  return instantiate(new WebAssembly.Module(inflateSync(decoded(), { out: new Uint8Array(size) })));
}

// Not by `Uint8Array.from(text, ...)`: that iterates, and is ten times slower; a page would stutter.
function decoded(): Uint8Array {
  const text = atob(deflated);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}
