/** For tests of code that retries. */
export * from "../../bindings-node/driver/testing.js";
