/** What tests of clients share, in Node and on a page. */

/** What the gateway answers. */
export const TEXT = "The gateway answers: all is well, 世界é";

/** No wait to speak of: the decisions are the machine's all the same. */
export const QUICK = { backoff: { kind: "constant", base: 1 }, jitter: { kind: "none" } };

/** Waits for what comes in a moment, however long that is on a busy machine. */
export async function until(there) {
  for (let i = 0; !there(); i++) {
    if (i === 20_000) throw new Error(`it never came true: ${there}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
