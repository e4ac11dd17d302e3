/** What names a call, and its seed; drawn when somebody first needs them. */
export class Ids {
  /** 32 hexadecimal digits, as the key. */
  readonly _traceId: string;
  readonly _key: string;
  /** As decimal text: a seed may have more digits than a number holds; these 52 bits are random enough for waits. */
  _seed: string;

  constructor(traceId?: string, key?: string) {
    this._traceId = traceId ?? draw();
    this._key = key ?? draw();
    this._seed = `${Number.parseInt(draw().slice(6, 19), 16)}`;
  }
}

// Asking for entropy, and spelling numbers, cost more than the rest: both are done in advance.
const pool = new Uint8Array(1 << 12);
let at = pool.length;
const digits: string[] = [];

function draw(): string {
  if (at === pool.length) {
    crypto.getRandomValues(pool);
    at = 0;
    for (let byte = 0; byte < 256; byte++) digits[byte] ??= (byte + 256).toString(16).slice(1);
  }
  let text = "";
  for (const end = at + 16; at < end; at++) text += digits[pool[at] as number];
  return text;
}
