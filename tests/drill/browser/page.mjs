/** The page: plays what it is given, shows each row as it comes, and keeps what was played for who opened it. */
import * as reprieve from "../../../bindings-wasm/dist/index.js";
import { drill } from "../js/drill.mjs";
import { resentWords } from "../js/table.mjs";
import { clients } from "./clients.mjs";

// A browser opens six connections to a server and no more: with more at once, calls would wait for each other.
const AT_ONCE = 2;

const status = document.querySelector("#status");
const body = document.querySelector("tbody");

Object.assign(globalThis, {
  names: clients.map(({ name }) => name),

  async play({ scenarios, promptVersion, gateway }) {
    status.textContent = `Each scenario with ${globalThis.names.join(" and ")}, against a server that misbehaves.`;
    const place = { reprieve, promptVersion, gateway };
    const played = await drill({ place, clients, scenarios, atOnce: AT_ONCE, onRow: show });
    // They came as they were done; now in the order of the scenarios.
    body.replaceChildren();
    played.rows.forEach(show);
    const passed = played.rows.filter((row) => row.pass).length;
    status.textContent += ` ${passed} of ${played.rows.length} as they should be, in ${played.seconds} s; engine: ${reprieve.engine}.`;
    return played;
  },
});

function show({ title, client, expected, seen, attempts = [], elapsed_ms: elapsed = [], differences, resent, pass }) {
  const seconds = elapsed.map((ms) => (ms / 1000).toFixed(2)).join(", ");
  const row = body.insertRow();
  for (const text of [
    title,
    client,
    expected,
    seen,
    [...new Set(attempts)].join(", "),
    seconds,
    pass ? "PASS" : "FAIL",
  ]) {
    row.insertCell().textContent = text;
  }
  row.lastChild.className = pass ? "pass" : "fail";
  for (const difference of differences) note(difference, "difference");
  if (resent) note(resentWords(resent), "note");
}

function note(text, kind) {
  const cell = body.insertRow().insertCell();
  cell.colSpan = 7;
  cell.className = kind;
  cell.textContent = text;
}
