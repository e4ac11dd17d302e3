import { suite } from "./langchain.mjs";

await suite("wasm");
