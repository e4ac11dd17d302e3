/** Attempts that are visible inside of them, for edge runtimes that have an `AsyncLocalStorage`. */
export * from "../../bindings-node/entry/context.js";
