/**
 * Makes attempts visible to whatever runs inside of them, across every `await`, through an `AsyncLocalStorage`: a call
 * inside of an attempt is then bounded by it without being told. Import it once, for its effect.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { type Attempt, setContext } from "../driver/index.js";

/** Where the attempt under way is kept. */
export const context: AsyncLocalStorage<Attempt> = new AsyncLocalStorage<Attempt>();

setContext(context);
