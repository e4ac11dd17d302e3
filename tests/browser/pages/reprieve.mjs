/** The package, bundled as an application would. */
export * from "../../../bindings-wasm/dist/index.js";
