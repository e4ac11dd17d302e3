import { suite } from "./streams/suite.js";

suite("wasm");
