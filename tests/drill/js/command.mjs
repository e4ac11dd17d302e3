/** What the players of Node and the browser have in common: their options, what they write and how they end. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { TARGET, TESTS } from "../../js/paths.mjs";
import { tableOf } from "./table.mjs";

/** `[--only ID ...] [--scenarios FILE] [--gateway FILE] [--out DIR]` */
export function command() {
  const text = (value) => ({ type: "string", default: value });
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true },
      scenarios: text(`${TESTS}drill/scenarios.json`),
      gateway: text(`${TARGET}release/gateway`),
      out: text(`${TARGET}drill`),
    },
  });
  const { prompt_version: promptVersion, scenarios } = JSON.parse(readFileSync(values.scenarios, "utf8"));
  const known = scenarios.map(({ id }) => id);
  const unknown = (values.only ?? []).filter((id) => !known.includes(id));
  if (unknown.length > 0) refuse(`no such scenario: ${unknown}; there are ${known}`);
  if (!existsSync(values.gateway)) refuse(`there is no gateway at ${values.gateway}: build it with \`make gateway\``);
  const chosen = values.only ? scenarios.filter(({ id }) => values.only.includes(id)) : scenarios;
  mkdirSync(values.out, { recursive: true });
  return { ...values, promptVersion, scenarios: chosen };
}

/** Prints the table, writes `NAME.json` and `NAME-receipts.jsonl`, and sets the exit code. */
export function finish({ out }, name, language, clients, { rows, lines, seconds }) {
  console.log(`Each scenario with ${clients.join(", ")}.\n`);
  for (const line of tableOf(rows)) console.log(line);
  writeFileSync(`${out}/${name}-receipts.jsonl`, lines.map((line) => `${line}\n`).join(""));
  writeFileSync(`${out}/${name}.json`, `${JSON.stringify({ language, seconds, rows }, undefined, 1)}\n`);
  const failures = rows.filter((row) => !row.pass).length;
  console.log(`\n${rows.length} results in ${seconds} s, ${failures} failed; they and the receipts are in ${out}`);
  process.exitCode = failures ? 1 : 0;
}

function refuse(why) {
  console.error(why);
  process.exit(2);
}
