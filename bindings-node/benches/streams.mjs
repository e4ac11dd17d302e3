/**
 * What a chunk of a stream costs more under `retryStream`: nanoseconds for each, beside a bare `for await`.
 *
 *     node bindings-node/benches/streams.mjs [--chunks N] [--rounds N]
 *
 * The source is written by hand and answers at once; a generator and a `ReadableStream` are measured beside it. Rounds
 * take turns, and the fastest of each counts: a busy machine makes a round slower, never faster.
 */
import { parseArgs } from "node:util";

import { retryStream } from "../dist/node/index.js";

const { values } = parseArgs({
  options: { chunks: { type: "string", default: "100000" }, rounds: { type: "string", default: "9" } },
});
const CHUNKS = Number(values.chunks);
const ROUNDS = Number(values.rounds);

const delta = (n) => ({
  id: "c",
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta: { content: `word ${n}` }, finish_reason: null }],
});
const end = { id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
const items = [...Array.from({ length: CHUNKS - 1 }, (_, n) => delta(n)), end];

const sources = {
  "an iterator by hand": () => ({
    [Symbol.asyncIterator]() {
      let at = 0;
      return {
        next: async () => (at < CHUNKS ? { done: false, value: items[at++] } : { done: true, value: undefined }),
      };
    },
  }),
  "an async generator": async function* () {
    for (const item of items) yield item;
  },
  "a ReadableStream": () => {
    let at = 0;
    return new ReadableStream({
      pull(controller) {
        if (at < CHUNKS) controller.enqueue(items[at++]);
        else controller.close();
      },
    });
  },
};

const policies = {
  retryStream: {},
  "with timers": { stream: { firstItemTimeout: 20_000, idleTimeout: 15_000, silenceTimeout: 60_000 } },
};

async function nsPerChunk(stream) {
  let count = 0;
  const before = process.hrtime.bigint();
  for await (const _ of stream) count++;
  const ns = Number(process.hrtime.bigint() - before);
  if (count !== CHUNKS) throw new Error(`${count} chunks came of ${CHUNKS}`);
  return ns / CHUNKS;
}

console.log(["source", "bare", ...Object.keys(policies), "added", "added, with timers"].join("\t"));
for (const [name, source] of Object.entries(sources)) {
  const ways = [() => source(), ...Object.values(policies).map((policy) => () => retryStream(source, policy))];
  const best = ways.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [way, open] of ways.entries()) best[way] = Math.min(best[way], await nsPerChunk(open()));
  }
  const [bare, ...ours] = best;
  console.log([name, ...best.map(Math.round), ...ours.map((ns) => Math.round(ns - bare))].join("\t"));
}
