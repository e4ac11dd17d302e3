/**
 * A script of `core/examples/identity.rs` played through a JavaScript engine, wherever one runs: the stream of actions,
 * snapshots and records, a line for each thing said. `identity.mjs` plays them in Node, a page in the browser.
 */
const IDS = { trace_id: "0123456789abcdef0123456789abcdef" };
const RECORDED = JSON.stringify({ ids: IDS, recorded: true });

/** The streams of many scripts, one JSON object a line, and how many there were. */
export function playAll(engine, text) {
  const scripts = text.split("\n").filter(Boolean);
  return { count: scripts.length, streams: scripts.map((script) => play(engine, JSON.parse(script))) };
}

/** The stream of one script. */
export function play(engine, { policy, seed, guards, run, steps }) {
  const built = engine.Policy.fromJson(JSON.stringify(policy));
  const shared = [guards ? new engine.Guards() : undefined, run ? new engine.Run(JSON.stringify(run)) : undefined];
  const stream = [];
  let call = new engine.Call(built, seed, RECORDED, ...shared);
  for (const step of steps) {
    try {
      stream.push(act(step));
    } catch (error) {
      if (JSON.parse(error.message).error !== "misuse") throw error;
      stream.push("misuse");
    }
  }
  return [...stream, ...JSON.parse(call.lines())].map((line) => `${line}\n`).join("");

  function act({ at, do: what, attempt, outcome, wall, wall_later: later, count_suspended: countSuspended }) {
    switch (what) {
      case "begin":
        return call.begin(at);
      case "cancel":
        return call.cancel(at);
      case "outcome":
        return call.onOutcome(at, attempt, JSON.stringify(outcome));
      default: {
        const snapshot = call.snapshot(at, wall);
        stream.push(snapshot);
        call = engine.Call.restore(snapshot, at, later, JSON.stringify({ countSuspended }), ...shared);
        return call.restored();
      }
    }
  }
}

/** The line that every language prints. */
export function line(count, name, hash) {
  return `${count} scripts, ${name.padEnd(8)} ${hash}`;
}
