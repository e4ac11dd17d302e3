/**
 * The drill in Node: the `openai` and `@anthropic-ai/sdk` clients against the fault gateway.
 *
 *     node tests/drill/node/drill.mjs [--only ID ...] [--scenarios FILE] [--gateway FILE] [--out DIR]
 *
 * Needs `npm ci` in `tests`, and `make node gateway`. Prints a table, a row for each step of a scenario with both clients
 * in it; writes `node-receipts.jsonl` and `node.json`. Exits with 1 if anything differs from `scenarios.json`.
 */
import * as reprieve from "../../../bindings-node/dist/node/index.js";
import { deadline } from "../../js/deadline.mjs";
import { command, finish } from "../js/command.mjs";
import { drill } from "../js/drill.mjs";
import { clients } from "./clients.mjs";
import { openFullBacklog, openGateway } from "./places.mjs";

/** How many are played at once: enough to be quick, and few enough to keep times on a small machine. */
const AT_ONCE = 8;

const options = command();
deadline(600);
const gateway = await openGateway(options.gateway);
const backlog = await openFullBacklog();
try {
  const { promptVersion, scenarios } = options;
  const place = { reprieve, promptVersion, gateway: gateway.url, backlog: backlog.url };
  const played = await drill({ place, clients, scenarios, atOnce: AT_ONCE, onRow: () => {} });
  finish(
    options,
    "node",
    "Node",
    clients.map(({ name }) => name),
    played,
  );
} finally {
  backlog.close();
  gateway.close();
}
