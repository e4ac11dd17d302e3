/** An application for a bundler: the package by both names, the small entry, and a worker. */
import * as reprieve from "reprieve";
import * as slim from "reprieve-wasm/slim";

import { check } from "./check.js";

const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const answered = new Promise((resolve) => {
  worker.onmessage = ({ data }) => resolve(data);
});
const first = await check(reprieve);
await slim.init();
globalThis.seen = [first, await check(slim), await answered];
