/** The wasm engine, with its module inlined: compiled when it is first asked for. */
import { instantiate } from "../../bindings-wasm/entry/engine.js";
import { module } from "../../bindings-wasm/entry/module.js";

let engine: ReturnType<typeof instantiate> | undefined;

export function load() {
  engine ??= instantiate(module());
  return engine;
}
