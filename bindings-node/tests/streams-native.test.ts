import { suite } from "./streams/suite.js";

suite("native");
