/** What names a call, and its seed; drawn when somebody first needs them. */
export class Ids {
  constructor(
    private _trace?: string | undefined,
    private _own?: string | undefined,
    private _drawn?: string | undefined,
  ) {}

  /** 32 hexadecimal digits. */
  get _traceId(): string {
    this._trace ??= draw();
    return this._trace;
  }

  /** Of requests that are one and the same: as the trace id, unless it was given. */
  get _key(): string {
    this._own ??= draw();
    return this._own;
  }

  /** As decimal text: a given one may have more digits than a number holds. 32 bits are random enough for waits. */
  get _seed(): string {
    this._drawn ??= `${view.getUint32(take(4))}`;
    return this._drawn;
  }

  /** The same with this seed, where one was given. */
  _seeded(seed: bigint | number | string | undefined): this {
    if (seed !== undefined) this._drawn = `${seed}`;
    return this;
  }
}

// Asking for entropy, and spelling numbers, cost more than the rest: both are done in advance.
const pool = new Uint8Array(1 << 12);
const view = new DataView(pool.buffer);
let used = pool.length;
const digits: string[] = [];

/** Where so many random bytes are. */
function take(bytes: number): number {
  if (used + bytes > pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  used += bytes;
  return used - bytes;
}

function draw(): string {
  if (digits.length === 0) for (let byte = 0; byte < 256; byte++) digits.push((byte + 256).toString(16).slice(1));
  let text = "";
  for (let at = take(16), end = at + 16; at < end; at++) text += digits[pool[at] as number];
  return text;
}
