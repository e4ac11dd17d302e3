/**
 * Plays the random scripts that `core/examples/identity.rs` wrote, through a JavaScript engine in Node, and prints the
 * hash of the stream of actions, snapshots and records. It must be Rust's.
 *
 *     node tests/identity/identity.mjs native|wasm FILE
 *
 * Needs `npm ci` in `tests`, and the engine built: `make node`, `make wasm`.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { engines } from "../js/engines.mjs";
import { line, playAll } from "./play.mjs";

const [name, file] = process.argv.slice(2);
if (!engines[name] || !file) {
  console.error("usage: identity.mjs native|wasm FILE");
  process.exit(2);
}
const { count, streams } = playAll(await engines[name](), readFileSync(file, "utf8"));
const digest = createHash("sha256");
for (const stream of streams) digest.update(stream);
console.log(line(count, name === "native" ? "node" : "wasm", digest.digest("hex")));
