/** For tests of code that retries. */
export * from "../driver/testing.js";
