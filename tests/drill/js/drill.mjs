/** A whole drill: every scenario with every client that can play it, some at once; the rows and receipts come out. */
import { differences, hidden, resent } from "./check.mjs";
import { drillId, play, stats, stepsOf } from "./play.mjs";
import { expectedWords, seenWords } from "./words.mjs";

/** Plays everything; `onRow` is told each row of results as soon as it is there. */
export async function drill({ place, clients, scenarios, atOnce, onRow }) {
  const began = performance.now();
  await warmUp(place, clients);
  const plays = scenarios.flatMap((scenario) =>
    clients
      .filter((client) => (scenario.needs ?? []).every((need) => client.can.includes(need)))
      .map((client) => ({ scenario, client })),
  );
  const [rows, lines, attempts] = [[], [], {}];
  const queue = [...plays];
  const worker = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { scenario, client } = next;
      const { rows: found, seen } = await played(place, client, scenario);
      next.rows = found;
      next.lines = seen.flatMap(({ calls }) => calls.flatMap((call) => call.lines));
      const made = seen.map((step) => resent(step) + sum(step.calls.map(({ ended }) => ended.attempts ?? 0)));
      attempts[drillId(scenario, client.name)] = sum(made);
      found.forEach(onRow);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  for (const one of plays) {
    rows.push(...one.rows);
    lines.push(...one.lines);
  }
  rows.push(await noHiddenRequest(place, attempts));
  onRow(rows.at(-1));
  return { seconds: Math.round((performance.now() - began) / 100) / 10, rows, lines };
}

/** A scenario with a client: a row for each step. */
async function played(place, client, scenario) {
  let seen = [];
  let fault;
  try {
    seen = await play(place, client, scenario);
  } catch (error) {
    fault = `the player failed: ${error?.stack ?? error}`;
  }
  const rows = stepsOf(scenario).map(({ title, expect }, i) => {
    const row = { scenario: scenario.id, title, client: client.name };
    const result = fault ? { seen: "nothing", differences: [fault] } : resultOf(expect, seen[i]);
    return { ...row, ...result, expected: expectedWords(expect), pass: result.differences.length === 0 };
  });
  return { rows, seen };
}

function resultOf(expect, seen) {
  const asked = Object.entries(seen.requests).filter(([, requests]) => requests.length > 0);
  return {
    seen: seenWords(seen, expect),
    attempts: seen.calls.map(({ ended }) => ended.attempts),
    elapsed_ms: seen.calls.map((call) => Math.round(call.elapsed_ms * 10) / 10),
    requests: Object.fromEntries(asked.map(([target, requests]) => [target, requests.length])),
    ...(resent(seen) > 0 && { resent: resent(seen) }),
    differences: differences(expect, seen),
  };
}

/** The gateway's last word: nothing came that no attempt has sent, not even late. */
async function noHiddenRequest(place, attempts) {
  const drills = Object.entries(await stats(place.gateway)).filter(([id]) => id in attempts);
  const counts = Object.fromEntries(drills.map(([id, { count }]) => [id, count]));
  const found = hidden(attempts, counts);
  return {
    scenario: "no-hidden-request",
    title: "no hidden request",
    client: "all",
    expected: `at most ${sum(Object.keys(counts).map((id) => attempts[id]))} requests`,
    seen: `${sum(Object.values(counts))} requests`,
    differences: found,
    pass: found.length === 0,
  };
}

/** One answer for each client, so that no scenario pays for what is loaded when it is first used. */
async function warmUp(place, clients) {
  for (const client of clients) {
    const [{ calls }] = await play(place, client, { id: "warm-up", policy: {}, prompts: { primary: "#[ok]" } });
    if (calls[0].error !== undefined)
      throw new Error(`${client.name} gets no answer from the gateway`, { cause: calls[0].error });
  }
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
