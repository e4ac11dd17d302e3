/** Streams under a policy, over one engine: a process for each, so that nothing of one is met in the other. */
import { describe } from "node:test";
import type { Engine } from "../../driver/engine.js";
import { setEngine } from "../../driver/index.js";
import { engines } from "../engines.js";
import { answers } from "./answers.js";
import { attempts } from "./attempts.js";
import { consumers } from "./consumers.js";
import { timers } from "./timers.js";

export function suite(name: string): void {
  describe(`streams over ${name}`, () => {
    setEngine(() => engines[name] as Engine);
    attempts();
    answers();
    consumers();
    timers();
  });
}
