import { engines } from "./engines.js";
import { suite } from "./requests-suite.js";

suite("native", engines.native as never);
