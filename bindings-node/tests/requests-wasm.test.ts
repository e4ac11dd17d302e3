import { engines } from "./engines.js";
import { suite } from "./requests-suite.js";

suite("wasm", engines.wasm as never);
