import { suite } from "./ai-sdk.mjs";

await suite("wasm");
