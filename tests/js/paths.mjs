/** Where things are. */
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
export const TESTS = `${ROOT}tests/`;
export const TARGET = `${process.env.CARGO_TARGET_DIR ?? `${ROOT}target`}/`;
