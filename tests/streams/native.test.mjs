import * as reprieve from "../../bindings-node/dist/node/native.js";
import { playAll } from "./play.mjs";

await playAll(reprieve);
