import { suite } from "./requests.mjs";

await suite("wasm");
