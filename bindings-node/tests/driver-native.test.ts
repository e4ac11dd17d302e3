import { suite } from "./driver/suite.js";

suite("native");
