/** The leg of a travelling call that is played in the browser. */
import { leg } from "../../identity/leg.mjs";
import * as reprieve from "./reprieve.mjs";

Object.assign(globalThis, { leg: (task) => leg(reprieve, task) });
