import * as reprieve from "../../bindings-node/dist/node/wasm.js";
import { playAll } from "./play.mjs";

await playAll(reprieve);
