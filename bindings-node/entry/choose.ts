/** Which engine this process runs on: all entries share one driver. */
import { align } from "../driver/clock.js";
import type { Engine } from "../driver/engine.js";
import { setEngine } from "../driver/load.js";

export type Name = "native" | "wasm";

let chosen: { name: Name; insisted: boolean; used: boolean } | undefined;

/** Chooses an engine unless somebody insisted on one before; answers which one runs. */
export function choose(name: Name, load: () => Engine, insisted: boolean): Name {
  if (chosen?.name === name) {
    chosen.insisted ||= insisted;
    return name;
  }
  if (chosen && !insisted) return chosen.name;
  if (chosen?.insisted || chosen?.used) {
    throw new Error(`reprieve/${name}: this process runs on the ${chosen.name} engine already`);
  }
  const mine = { name, insisted, used: false };
  chosen = mine;
  setEngine(() => {
    mine.used = true;
    const engine = load();
    // Guards are shared between threads, each of which counts time from its own start.
    if (engine.now) align(engine.now());
    return engine;
  });
  return name;
}
