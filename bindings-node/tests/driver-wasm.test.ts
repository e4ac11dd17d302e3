import { suite } from "./driver/suite.js";

suite("wasm");
