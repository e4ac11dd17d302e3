/** Loads the module from where it is, once. */
import { setEngine } from "../../bindings-node/driver/load.js";
import { instantiate } from "./engine.js";

/** Where the module comes from: an address, a response, its bytes, or the module itself. */
export type Source = string | URL | Request | Response | BufferSource | WebAssembly.Module;

type Later<T> = T | Promise<T>;

let usual: () => Later<Source>;
let loading: Promise<void> | undefined;

/** Where the module is when nobody says. */
export function setInit(source: () => Later<Source>): void {
  usual = source;
  setEngine(() => {
    throw new Error("reprieve: the module is not loaded; await init() first");
  }, init);
}

/** Loads and compiles the module. Asked again it waits for the same; after a failure it tries again. */
export function init(source: Later<Source> = usual()): Promise<void> {
  loading ??= compile(source).then(
    (module) => setEngine(() => instantiate(module)),
    (fault) => {
      loading = undefined;
      throw fault;
    },
  );
  return loading;
}

async function compile(source: Later<Source>): Promise<WebAssembly.Module> {
  const given = await source;
  if (given instanceof WebAssembly.Module) return given;
  if (ArrayBuffer.isView(given) || given instanceof ArrayBuffer) return WebAssembly.compile(given);
  const response = given instanceof Response ? given : await fetch(given);
  if (!response.ok) throw new Error(`reprieve: ${response.url} answered ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
}
