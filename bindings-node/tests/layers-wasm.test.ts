import { suite } from "./layers-suite.js";

suite("wasm");
