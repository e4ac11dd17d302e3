import { suite } from "./wrap/suite.mjs";

await suite("native");
