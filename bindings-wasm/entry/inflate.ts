/**
 * Inflates raw deflate data (RFC 1951). A module's text is a third smaller deflated, and `DecompressionStream` would
 * make its first use wait.
 */

// How many bits follow length and distance symbols, and what the symbols begin at.
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCE_BITS = [
  0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
];
const LENGTHS = begins(LENGTH_BITS, 3);
const DISTANCES = begins(DISTANCE_BITS, 1);
/** The longest match has a symbol of its own. */
LENGTHS[28] = 258;
/** The order in which the lengths of the codes of lengths are given. */
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

function begins(bits: number[], first: number): number[] {
  let next = first;
  return bits.map((count) => {
    next += 1 << count;
    return next - (1 << count);
  });
}

/** By the bits that come next, the symbol and how many of them it takes: `symbol * 16 + length`. */
type Code = Uint16Array;

/** The canonical code of these lengths. */
function codeOf(lengths: number[]): Code {
  const longest = Math.max(1, ...lengths);
  const table = new Uint16Array(1 << longest);
  let code = 0;
  for (let length = 1; length <= longest; length += 1) {
    for (let symbol = 0; symbol < lengths.length; symbol += 1) {
      if (lengths[symbol] !== length) continue;
      // Codes come with their first bit first, all else with its last.
      let at = 0;
      for (let bit = 0; bit < length; bit += 1) at |= ((code >> bit) & 1) << (length - 1 - bit);
      for (; at < table.length; at += 1 << length) table[at] = symbol * 16 + length;
      code += 1;
    }
    code <<= 1;
  }
  return table;
}

/** `size` bytes of what was deflated. */
export function inflate(data: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(size);
  let at = 0;
  let byte = 0;
  let held = 0;
  let bits = 0;

  // Runs a hundred thousand times before any compiler has looked at it: no iterators, and few calls.

  /** Holds at least so many bits; past the end there are zeros. */
  function hold(count: number): void {
    for (; bits < count; bits += 8) held |= (data[byte++] as number) << bits;
  }

  function take(count: number): number {
    if (bits < count) hold(count);
    const value = held & ((1 << count) - 1);
    held >>>= count;
    bits -= count;
    return value;
  }

  function symbol(code: Code): number {
    if (bits < 15) hold(15);
    const found = code[held & (code.length - 1)] as number;
    held >>>= found & 15;
    bits -= found & 15;
    return found >> 4;
  }

  /** The codes that a block brings along. */
  function codes(): [Code, Code] {
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
      const end = at + (LENGTHS[next - 257] as number) + take(LENGTH_BITS[next - 257] as number);
      const far = symbol(distances);
      const back = (DISTANCES[far] as number) + take(DISTANCE_BITS[far] as number);
      for (; at < end; at += 1) out[at] = out[at - back] as number;
    }
  }

  for (let last = 0; !last; ) {
    last = take(1);
    const kind = take(2);
    if (kind === 2) {
      block(codes());
    } else if (kind === 1) {
      const fixed = Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8));
      block([codeOf(fixed), codeOf(new Array(30).fill(5))]);
    } else {
      // Stored as it is, from the next whole byte on.
      byte -= bits >> 3;
      held = bits = 0;
      const length = take(16);
      take(16);
      out.set(data.subarray(byte, byte + length), at);
      at += length;
      byte += length;
    }
  }
  return out;
}
