/** Finds and loads the addon of this platform. */
import type { Engine } from "../driver/engine.js";
import type * as native from "../gen/native.js";

type Addon = typeof native;

const ABIS: Record<string, string[]> = { linux: ["-gnu", "-musl"], win32: ["-msvc"] };

/** The addon, from its own package or from a checkout. Throws what stood in the way of each. */
export function loadAddon(): Engine & { now(): number } {
  const { platform, arch } = process;
  const faults: unknown[] = [];
  for (const abi of ABIS[platform] ?? [""]) {
    const name = `${platform}-${arch}${abi}`;
    for (const place of [`../../npm/${name}/index.js`, `reprieve-${name}`]) {
      try {
        const addon: Addon = require(place);
        if (addon.version() === VERSION) return addon;
        faults.push(new Error(`${place} is of version ${addon.version()}, not ${VERSION}`));
      } catch (fault) {
        faults.push(fault);
      }
    }
  }
  throw new AggregateError(faults, `reprieve: no native engine for ${platform}-${arch}`);
}

/** Of this package; put in by the build. */
declare const VERSION: string;
