import { suite } from "./wrap.mjs";

await suite("native");
