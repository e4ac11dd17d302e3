/** What names a call, and its seed; drawn when somebody first needs them. */
export interface Ids {
  readonly _traceId: string;
  readonly _key: string;
  /** As decimal text: a seed has more digits than a number holds. */
  readonly _seed: string;
}

/** New ones, from the runtime's entropy. */
export function drawIds(): Ids {
  const words = crypto.getRandomValues(new Uint32Array(10));
  const hex = (from: number): string => {
    let text = "";
    for (let at = from; at < from + 4; at++) text += (words[at] as number).toString(16).padStart(8, "0");
    return text;
  };
  const [high, low] = words.subarray(8) as unknown as [number, number];
  // The 53 bits that a number holds are random enough for waits.
  return { _traceId: hex(0), _key: hex(4), _seed: String((high >>> 11) * 2 ** 32 + low) };
}
