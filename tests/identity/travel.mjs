/**
 * A call that travels: begun in Python, where it fails; on in Node; ended in Chromium. What it writes down is what the
 * same call writes that stays in one place, be it Python, Node or Chromium.
 *
 *     node tests/identity/travel.mjs [--python FILE]
 *
 * Needs `npm ci` in `tests`, the packages built (`make python node wasm`) and a Chromium. Prints the receipts by place;
 * exits with 1 if anything differs.
 *
 * `travel.json` holds the call and its legs. A leg is a task (what to take up, and at which moment; the outcomes to play;
 * how long to wait before the call is laid down again) and answers with a snapshot, or with the records of a call that is
 * done. Time is virtual and goes on from leg to leg, so that nothing is suspended; each place counts it from an epoch of
 * its own, as real places do.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import * as reprieve from "../../bindings-node/dist/node/native.js";
import { launch } from "../browser/chromium.mjs";
import { serve } from "../browser/server.mjs";
import { bundle } from "../js/bundle.mjs";
import { deadline } from "../js/deadline.mjs";
import { TESTS } from "../js/paths.mjs";
import { leg } from "./leg.mjs";

const { values: options } = parseArgs({ options: { python: { type: "string", default: "python3" } } });
const { legs, ...call } = JSON.parse(readFileSync(`${TESTS}identity/travel.json`, "utf8"));

deadline(600);
const pages = await bundle("travel", ["tests/browser/pages/travel.mjs"]);
const server = await serve({ "/js/travel/": pages, "/pages/": `${TESTS}browser/pages/` });
const browser = await launch();
try {
  const page = await browser.open(`${server.url}/pages/travel.html`);
  const places = {
    python: (task) =>
      JSON.parse(
        execFileSync(options.python, [`${TESTS}identity/leg.py`], { input: JSON.stringify(task), encoding: "utf8" }),
      ),
    node: (task) => leg(reprieve, task),
    chromium: (task) => page.evaluate((given) => globalThis.leg(given), task),
  };
  const travelled = await travel(places);
  compare(travelled, await stays(places));
  print(travelled);
  assert.deepEqual(page.complaints, []);
} finally {
  await browser.close();
  server.close();
}

/** The call from place to place: its records, and who made which attempt. */
async function travel(places) {
  const where = new Map();
  let end = { at_ns: 0 };
  for (const { place, ...task } of legs) {
    const { at_ns, snapshot } = end;
    end = await places[place]({ ...call, ...task, at_ns, ...(snapshot && { snapshot }) });
    for (const attempt of end.attempts) where.set(attempt, place);
  }
  assert.equal(end.kind, "done");
  return { where, records: end.records };
}

/** The same call in each place from its beginning to its end. */
async function stays(places) {
  const outcomes = legs.flatMap((one) => one.outcomes);
  const found = {};
  for (const { place, epoch_ns } of legs) {
    const { records } = await places[place]({ ...call, epoch_ns, at_ns: 0, outcomes, pause_ns: 0 });
    found[place] = records;
  }
  return found;
}

function compare({ where, records }, uninterrupted) {
  const { trace_id: traceId, idempotency_key: key } = call.ids;
  assert.deepEqual([...new Set(records.map((record) => record.trace_id))], [traceId]);
  assert.equal(records.at(-1).idempotency_key, key);
  assert.deepEqual(
    [...new Set(where.values())],
    legs.map(({ place }) => place),
  );
  for (const [place, expected] of Object.entries(uninterrupted)) {
    assert.deepEqual(records, expected, `the call that stays in ${place} writes other records`);
  }
}

function print({ where, records }) {
  const ended = records.at(-1);
  console.log(`trace ${ended.trace_id}, idempotency key ${ended.idempotency_key}`);
  const widths = [10, 9, 10, 14, 10];
  const row = (...cells) =>
    console.log(
      cells
        .map((cell, i) => String(cell ?? "-").padEnd(widths[i] ?? 0))
        .join("")
        .trimEnd(),
    );
  row("place", "attempt", "target", "outcome", "decision", "delay ms");
  for (const { attempt, target, kind, outcome, decision, delay_ms: delay } of records.slice(0, -1)) {
    row(where.get(attempt), attempt, target, kind ?? outcome, decision, delay);
  }
  console.log(
    `${ended.outcome} after ${ended.attempts} attempts; the same records as in one place: ${legs.map((l) => l.place).join(", ")}`,
  );
}
