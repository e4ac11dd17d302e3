import { suite } from "./ai-sdk.mjs";

await suite("native");
