/** The table that a drill prints: a line for each step with all clients in it, and one more for each difference. */
const WIDTHS = [46, 22, 22, 8, 11];

/** The rows of one step, as they are in a player's results, one below the other. */
export function* tableOf(rows) {
  yield cells(["scenario", "expected", "seen", "attempts", "elapsed s"]).trimEnd();
  yield "-".repeat(cells([]).length + 5);
  for (const group of grouped(rows)) {
    const [{ title, expected }] = group;
    const seen = unique(group.map((row) => row.seen));
    const attempts = unique(group.flatMap((row) => row.attempts ?? []));
    const failed = group.some((row) => !row.pass);
    yield `${cells([title, expected, seen, attempts, span(group)])} ${failed ? "FAIL" : "PASS"}`;
    for (const { client, resent } of group) if (resent) yield `    ${client}: ${resentWords(resent)}`;
    for (const { client, differences } of group)
      for (const difference of differences) yield `    ${client}: ${difference}`;
  }
}

/** What nobody asked for, and nobody can forbid. */
export function resentWords(count) {
  return `${count} request${count === 1 ? "" : "s"} sent again by the browser itself, on another connection`;
}

/** Rows of the same step, whoever's they are. */
export function grouped(rows) {
  const groups = new Map();
  for (const row of rows) {
    const key = `${row.scenario}/${row.title}`;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups.values()];
}

function span(rows) {
  const elapsed = rows.flatMap((row) => row.elapsed_ms ?? []).map((ms) => ms / 1000);
  if (elapsed.length === 0) return "";
  const [low, high] = [Math.min(...elapsed).toFixed(2), Math.max(...elapsed).toFixed(2)];
  return low === high ? low : `${low}-${high}`;
}

const unique = (values) => [...new Set(values)].join(" or ");

const cells = (texts) => WIDTHS.map((width, i) => String(texts[i] ?? "").padEnd(width)).join("  ");
