/** The leg of a travelling call that is played in the browser. */
import { leg } from "../../identity/leg.mjs";
import * as reprieve from "./reprieve.js";

Object.assign(globalThis, { leg: (task: unknown) => leg(reprieve, task) });
