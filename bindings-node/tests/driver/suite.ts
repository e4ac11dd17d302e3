/** The driver's promises, over one engine: a process for each runs them, so that nothing of one is met in the other. */
import { describe } from "node:test";
import type { Engine } from "../../driver/engine.js";
import { setEngine } from "../../driver/index.js";
import { engines } from "../engines.js";
import { attempts } from "./attempts.js";
import { endings } from "./endings.js";
import { errors } from "./errors.js";
import { guards } from "./guards.js";
import { input } from "./input.js";
import { reports } from "./reports.js";
import { time } from "./time.js";

export function suite(name: string): void {
  describe(`driver over ${name}`, () => {
    setEngine(() => engines[name] as Engine);
    attempts();
    errors();
    endings();
    input();
    reports();
    guards(name);
    time();
  });
}
