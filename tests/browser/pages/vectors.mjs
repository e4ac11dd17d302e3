/** The vectors' runners of Node as they are, through the browser's engine: raw, and under the driver. */
import "../shims/immediate.mjs";
import "../../../bindings-node/tests/vectors-raw.test.ts";
import "../../../bindings-node/tests/driver-vectors.test.ts";
import { runAll } from "../shims/test.mjs";

Object.assign(globalThis, { runAll });
