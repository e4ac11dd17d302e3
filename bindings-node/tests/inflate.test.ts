/** What is deflated comes out as it went in, whatever kind of block it is in. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { constants, deflateRawSync } from "node:zlib";

import { inflate } from "../../bindings-wasm/entry/inflate.js";

const { Z_FIXED, Z_DEFAULT_STRATEGY, Z_HUFFMAN_ONLY } = constants;

/** Bytes that repeat themselves less the more there are `kinds` of them. */
function bytes(length: number, kinds: number): Uint8Array {
  let state = 7;
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 16) % kinds;
  });
}

for (const [name, options] of Object.entries({
  "codes of its own": { strategy: Z_DEFAULT_STRATEGY },
  "the fixed codes": { strategy: Z_FIXED },
  "no matches": { strategy: Z_HUFFMAN_ONLY },
  "blocks stored as they are": { level: 0 },
})) {
  test(`inflates ${name}`, () => {
    for (const length of [0, 1, 2, 3, 300, 70_000, 300_000]) {
      for (const kinds of [1, 2, 60, 256]) {
        const whole = bytes(length, kinds);
        assert.deepEqual(inflate(deflateRawSync(whole, options), length), whole, `${length} bytes of ${kinds} kinds`);
      }
    }
  });
}
