import { suite } from "./requests/suite.js";

suite("native");
