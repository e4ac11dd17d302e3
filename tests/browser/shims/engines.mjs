/** The one engine of a browser, for the vectors' runners. */
import { load } from "../../../bindings-wasm/entry/inlined.ts";

export const engines = { chromium: load() };
