/** A worker of a browser. */
import * as reprieve from "reprieve-wasm";

import { check } from "./check.js";

check(reprieve).then(postMessage, (fault) => postMessage(String(fault)));
