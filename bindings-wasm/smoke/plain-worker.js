/** A worker of a page without a bundler: an import map does not reach it. */
import * as reprieve from "/dist/index.js";

import { check } from "./check.js";

check(reprieve).then(postMessage, (fault) => postMessage(String(fault)));
