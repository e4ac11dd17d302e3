/**
 * What a wrapped client adds to each chunk of a stream: the client itself beside the wrapped one, against the gateway.
 *
 *     node bindings-node/benches/clients.mjs [--rounds N]
 *
 * Rounds take turns, with the same stream, and the fastest of each counts: a busy machine makes a round slower, never
 * faster. Time is the processor's: of the thread that the chunks are consumed on (where Linux tells it), which is what
 * they come later for, and of the whole process, with the threads of the garbage collector. Writes
 * `target/bench/node-clients.json`.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";

import { openGateway } from "../../tests/drill/node/places.mjs";
import { TARGET, TESTS } from "../../tests/js/paths.mjs";
import { wrap } from "../dist/node/index.js";

const required = createRequire(TESTS);
const { default: OpenAI } = required("openai");
const { default: Anthropic } = required("@anthropic-ai/sdk");

const { values } = parseArgs({ options: { rounds: { type: "string", default: "7" } } });
const ROUNDS = Number(values.rounds);
const LENGTHS = [1_000, 20_000];
/** So many chunks are timed together: a short stream is asked for more often. */
const TOGETHER = 40_000;

const messages = (content) => [{ role: "user", content }];
const WAYS = {
  "openai chat": {
    make: (url) => new OpenAI({ apiKey: "none", baseURL: `${url}/v1` }),
    ask: (client, text) => client.chat.completions.create({ model: "m", messages: messages(text), stream: true }),
  },
  "openai responses": {
    make: (url) => new OpenAI({ apiKey: "none", baseURL: `${url}/v1` }),
    ask: (client, input) => client.responses.create({ model: "m", input, stream: true }),
  },
  anthropic: {
    make: (url) => new Anthropic({ apiKey: "none", baseURL: url }),
    ask: (client, text) =>
      client.messages.create({ model: "m", max_tokens: 99, messages: messages(text), stream: true }),
  },
};

/** Microseconds that this thread, and this process, have had of the processor. */
function spent() {
  const { user, system } = process.cpuUsage();
  if (process.platform !== "linux") return [Number.NaN, user + system];
  const [ns] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ");
  return [Number(ns) / 1e3, user + system];
}

/** Microseconds for each chunk. */
async function measured(ask, client, chunks) {
  let count = 0;
  const before = spent();
  for (let asked = 0; asked < TOGETHER; asked += chunks) {
    for await (const _ of await ask(client, `#[sse-whole=${chunks}]`)) count++;
  }
  return spent().map((us, at) => (us - before[at]) / count);
}

const gateway = await openGateway(`${TARGET}release/gateway`);
const found = {};
console.log(["us for each chunk".padEnd(26), "bare", "wrapped", "added", "ratio", "process: bare", "added"].join("\t"));
for (const [name, { make, ask }] of Object.entries(WAYS)) {
  const bare = make(gateway.url);
  const clients = [bare, wrap(bare)];
  for (const chunks of LENGTHS) {
    const best = clients.map(() => [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]);
    for (let round = 0; round < ROUNDS; round++) {
      for (const [at, client] of clients.entries()) {
        const us = await measured(ask, client, chunks);
        best[at] = best[at].map((least, which) => Math.min(least, us[which]));
      }
    }
    const [[own, all], [wrapped, allWrapped]] = best;
    const figures = { bare: own, wrapped, added: wrapped - own, ratio: wrapped / own };
    found[`${name}, ${chunks}`] = { ...figures, process: { bare: all, added: allWrapped - all } };
    const row = [...Object.values(figures), all, allWrapped - all].map((us) => us.toFixed(2));
    console.log([`${name}, ${chunks}`.padEnd(26), ...row].join("\t"));
  }
}
gateway.close();
mkdirSync(`${TARGET}bench`, { recursive: true });
writeFileSync(`${TARGET}bench/node-clients.json`, `${JSON.stringify(found, undefined, 1)}\n`);
