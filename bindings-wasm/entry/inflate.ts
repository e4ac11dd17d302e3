/**
 * Inflates raw deflate data (RFC 1951). A module's text is a third smaller deflated, and `DecompressionStream` would
 * make its first use wait.
 */

// What length and distance symbols begin at, and how many bits follow them.
const LENGTHS = spread([1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 16, 16, 16, 16, 32, 32, 32, 32], 3);
const DISTANCES = spread([1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64, 128, 128, 256, 256, 512, 512, 1024, 1024,
  2048, 2048, 4096, 4096, 8192, 8192], 1);
/** The order in which the lengths of the codes of lengths are given. */
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** Pairs of where a symbol begins and its bits, from the step to the next. */
function spread(steps: number[], first: number): [number, number][] {
  let begin = first;
  return steps.map((step) => {
    begin += step;
    return [begin - step, 31 - Math.clz32(step)];
  });
}

/** A canonical code: how many symbols have each length, and the symbols in order. */
type Code = { counts: number[]; symbols: number[] };

function codeOf(lengths: number[]): Code {
  const counts = new Array(16).fill(0);
  for (const length of lengths) counts[length] += 1;
  counts[0] = 0;
  const symbols = [];
  for (let length = 1; length < 16; length++) {
    for (const [symbol, own] of lengths.entries()) if (own === length) symbols.push(symbol);
  }
  return { counts, symbols };
}

/** `size` bytes of what was deflated. */
export function inflate(data: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(size);
  let at = 0;
  let [byte, held, bits] = [0, 0, 0];

  function take(count: number): number {
    while (bits < count) {
      held |= (data[byte++] as number) << bits;
      bits += 8;
    }
    const value = held & ((1 << count) - 1);
    held >>>= count;
    bits -= count;
    return value;
  }

  function symbol({ counts, symbols }: Code): number {
    let [code, first, index] = [0, 0, 0];
    for (let length = 1; ; length++) {
      code |= take(1);
      const count = counts[length] as number;
      if (code - count < first) return symbols[index + code - first] as number;
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
  }

  /** The lengths of a block's own codes. */
  function lengths(): [Code, Code] {
    const [literals, distances, given] = [take(5) + 257, take(5) + 1, take(4) + 4];
    const own = new Array(19).fill(0);
    for (const place of ORDER.slice(0, given)) own[place] = take(3);
    const code = codeOf(own);
    const all: number[] = [];
    while (all.length < literals + distances) {
      const next = symbol(code);
      if (next < 16) all.push(next);
      else if (next === 16) all.push(...new Array(take(2) + 3).fill(all.at(-1)));
      else all.push(...new Array(next === 17 ? take(3) + 3 : take(7) + 11).fill(0));
    }
    return [codeOf(all.slice(0, literals)), codeOf(all.slice(literals))];
  }

  function block([literals, distances]: [Code, Code]): void {
    for (let next = symbol(literals); next !== 256; next = symbol(literals)) {
      if (next < 256) {
        out[at++] = next;
        continue;
      }
      const [length, more] = LENGTHS[next - 257] ?? [258, 0];
      const end = at + length + take(more);
      const [distance, further] = DISTANCES[symbol(distances)] as [number, number];
      const back = distance + take(further);
      for (; at < end; at++) out[at] = out[at - back] as number;
    }
  }

  for (let last = 0; !last; ) {
    last = take(1);
    const kind = take(2);
    if (kind === 0) {
      // Stored as it is, from the next whole byte on.
      byte -= bits >> 3;
      held = bits = 0;
      const length = (data[byte] as number) | ((data[byte + 1] as number) << 8);
      out.set(data.subarray(byte + 4, byte + 4 + length), at);
      at += length;
      byte += 4 + length;
    } else {
      block(kind === 2 ? lengths() : FIXED);
    }
  }
  return out;
}

const FIXED: [Code, Code] = [
  codeOf(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))),
  codeOf(new Array(30).fill(5)),
];
