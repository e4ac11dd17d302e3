/** What names a call, and its seed; drawn when somebody first needs them. */
export class Ids {
  /** 32 hexadecimal digits. */
  _traceId: string;
  /** As decimal text: a seed has more digits than a number holds. */
  _seed: string;
  private _drawnKey: string | undefined;

  constructor(traceId?: string, key?: string) {
    this._traceId = traceId ?? hex();
    this._drawnKey = key;
    // The 53 bits that a number holds are random enough for waits.
    this._seed = `${(word() >>> 11) * 2 ** 32 + word()}`;
  }

  /** Most calls are over before anybody asks for it. */
  get _key(): string {
    this._drawnKey ??= hex();
    return this._drawnKey;
  }
}

// Asking for entropy costs more than what is asked for: taken in advance, for some calls at once.
const pool = new Uint32Array(512);
let at = pool.length;

function word(): number {
  if (at === pool.length) {
    crypto.getRandomValues(pool);
    at = 0;
  }
  return pool[at++] as number;
}

function hex(): string {
  let text = "";
  while (text.length < 32) text += (word() + 2 ** 32).toString(16).slice(1);
  return text;
}
