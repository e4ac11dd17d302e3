import { suite } from "./layers-suite.js";

suite("native");
