/**
 * The drill in columns: what each player wrote, side by side, a line for each step.
 *
 *     node tests/drill/columns.mjs [--scenarios FILE] [--out DIR] [NAME ...]
 *
 * NAMEs are the players' (`python node browser`), DIR is where they wrote `NAME.json`. A cell says how it went with all
 * clients of a place: attempts and seconds. Exits with 1 if something failed anywhere, if a step ended otherwise in one
 * place than in another, or if a scenario was left out by a place without need.
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { TARGET, TESTS } from "../js/paths.mjs";
import { grouped, resentWords } from "./js/table.mjs";

const text = (value) => ({ type: "string", default: value });
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { scenarios: text(`${TESTS}drill/scenarios.json`), out: text(`${TARGET}drill`) },
});
const names = positionals.length > 0 ? positionals : ["python", "node", "browser"];
const places = names.map((name) => {
  const { language, seconds, rows } = JSON.parse(readFileSync(`${values.out}/${name}.json`, "utf8"));
  return { language, seconds, rows, steps: new Map(grouped(rows).map((group) => [keyOf(group[0]), group])) };
});

const [TITLE, END, CELL] = [46, 23, 20];
const [notes, faults] = [[], []];

line(
  "scenario",
  "ends",
  places.map(({ language }) => language),
);
line(
  "",
  "",
  places.map(({ rows }) => clientsOf(rows)),
);
console.log("-".repeat(TITLE + END + CELL * places.length));
for (const scenario of JSON.parse(readFileSync(values.scenarios, "utf8")).scenarios) {
  for (const { title } of scenario.steps ?? [scenario]) step(scenario.id, title, scenario.needs ?? []);
}
step("no-hidden-request", "no hidden request", []);
console.log("-".repeat(TITLE + END + CELL * places.length));
line(
  "",
  "",
  places.map(({ rows, seconds }) => `${rows.filter((row) => row.pass).length}/${rows.length} in ${seconds} s`),
);
for (const note of notes) console.log(note);
for (const fault of faults) console.log(fault);
process.exitCode = faults.length > 0 ? 1 : 0;

/** One line: a step in all places. */
function step(scenario, title, needs) {
  const groups = places.map(({ steps }) => steps.get(keyOf({ scenario, title })));
  const ends = [...new Set(groups.flatMap((group) => group ?? []).map((row) => row.seen))];
  // Of requests there are as many as there are clients.
  const counts = scenario === "no-hidden-request";
  line(
    title,
    counts ? "none" : ends.join(" | "),
    groups.map((group) => cellOf(group, needs)),
  );
  if (ends.length > 1 && !counts) faults.push(`${title}: it does not end alike everywhere`);
  for (const [i, group] of groups.entries()) {
    const { language } = places[i];
    if (!group && needs.length === 0) faults.push(`${title}: not played in ${language}`);
    for (const { client, resent } of group ?? [])
      if (resent) notes.push(`${title}: ${language}, ${client}: ${resentWords(resent)}`);
    for (const { client, differences } of group ?? []) {
      for (const difference of differences) faults.push(`${title}: ${language}, ${client}: ${difference}`);
    }
  }
}

function cellOf(group, needs) {
  if (!group) return `- (no ${needs.join(", ")})`;
  const attempts = [...new Set(group.flatMap((row) => row.attempts ?? []))].join("-");
  const elapsed = group.flatMap((row) => row.elapsed_ms ?? []).map((ms) => ms / 1000);
  const [low, high] = [Math.min(...elapsed).toFixed(2), Math.max(...elapsed).toFixed(2)];
  const span = elapsed.length > 0 ? ` in ${low === high ? low : `${low}-${high}`}` : "";
  const told = attempts ? `${attempts}${span}` : group[0].seen;
  return `${group.every((row) => row.pass) ? "ok" : "FAIL"} ${told}`;
}

function clientsOf(rows) {
  const clients = [...new Set(rows.map((row) => row.client))].filter((client) => client !== "all");
  return [...new Set(clients.map((client) => client.replace(" async", "")))].join(", ");
}

function line(title, end, cells) {
  console.log(`${title.padEnd(TITLE)}${end.padEnd(END)}${cells.map((cell) => cell.padEnd(CELL)).join("")}`.trimEnd());
}

function keyOf({ scenario, title }) {
  return `${scenario}/${title}`;
}
