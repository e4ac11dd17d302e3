/** `check`, `prepare` and `repair`, over one engine: a process for each, so that nothing of one is met in the other. */
import { describe } from "node:test";
import type { Engine } from "../../driver/engine.js";
import { setEngine } from "../../driver/index.js";
import { engines } from "../engines.js";
import { changes } from "./changes.js";
import { checks } from "./checks.js";

export function suite(name: string): void {
  describe(`requests over ${name}`, () => {
    setEngine(() => engines[name] as Engine);
    checks();
    changes();
  });
}
