/** A call in a worker: no window, no document. */
import { retry } from "./reprieve.mjs";

let attempts = 0;
const value = await retry(
  ({ number }) => {
    attempts = number;
    if (number < 3) throw new TypeError("Failed to fetch");
    return "fine";
  },
  { backoff: { base: 1 } },
);
postMessage({ value, attempts });
