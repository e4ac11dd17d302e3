/**
 * Plays a scenario with a client, and writes down what was seen: as `../python/play.py`, in Node and on a page.
 *
 * A `place` is where it is played: `reprieve`, the addresses `gateway` and `backlog`, and `promptVersion`. A client is
 * `{name, ask(question, attempt), text(answer), isOwn(error), executes, counts, resends, can}`.
 */

/** No call takes so long, in milliseconds. What a call must not wait for takes longer than this. */
const PATIENCE_MS = 120_000;

/** What the gateway knows the requests of a play by. */
export function drillId(scenario, client) {
  return `${scenario.id}/${client}`.replaceAll(" ", "-");
}

/** The steps of a scenario; without any, it is one itself. */
export function stepsOf(scenario) {
  return scenario.steps ?? [scenario];
}

/** Everything that each drill has asked of the gateway, or one drill alone. */
export async function stats(gateway, drill) {
  const response = await fetch(`${gateway}/__stats${drill ? `?drill=${encodeURIComponent(drill)}` : ""}`);
  return (await response.json()).drills;
}

/** All steps, one after another, with the same guards. */
export async function play(place, client, scenario) {
  const { Policy } = place.reprieve;
  const { preset, policy: fields = {} } = scenario;
  const policy = preset ? Policy.preset(preset).with(camel(fields)) : Policy.fromJSON(fields);
  const { guards } = policy;
  const seen = [];
  for (const step of stepsOf(scenario)) {
    await sleep(step.after_ms ?? 0);
    const before = await requests(place, client, scenario);
    const bound = policy.with(camel(step.replace ?? {})).bind({ guards });
    const calls = await callsOf(place, client, scenario, step, bound);
    const after = await requests(place, client, scenario);
    const fresh = Object.entries(after).map(([target, all]) => [target, all.slice(before[target].length)]);
    const { name, isOwn, counts, resends } = client;
    const breaker = guards.breakerState(policy) ?? null;
    seen.push({ client: name, isOwn, counts, resends, calls, requests: Object.fromEntries(fresh), breaker });
  }
  return seen;
}

async function callsOf(place, client, scenario, { calls = 1, together }, bound) {
  const call = () => (scenario.cancel ? cancelled : plain)(place, client, scenario, bound);
  if (together) return Promise.all(Array.from({ length: calls }, call));
  const seen = [];
  while (seen.length < calls) seen.push(await call());
  return seen;
}

function plain(place, client, scenario, bound) {
  return start(place, client, scenario, bound).end;
}

async function cancelled(place, client, scenario, bound) {
  const { what, once, after_ms: after } = scenario.cancel;
  const run = new place.reprieve.Run();
  const controller = new AbortController();
  const cancels = what === "run" ? { run } : { signal: controller.signal };
  let heard;
  const hearing = new Promise((resolve) => {
    heard = resolve;
  });
  const onEvent = ({ event }) => event === once && heard();
  const call = start(place, client, scenario, bound.bind({ ...cancels, onEvent }));
  await (once === "request" ? arrival(place, client, scenario) : hearing);
  await sleep(after);
  if (what === "run") run.cancel("the drill cancels it");
  else controller.abort();
  return call.end;
}

/** Until the gateway has a request. */
async function arrival(place, client, scenario) {
  while (Object.values(await requests(place, client, scenario)).flat().length === 0) await sleep(20);
}

/** Starts a call; its `end` is what was seen of it. */
function start(place, client, scenario, bound) {
  const lines = [];
  const asks = Object.keys(scenario.prompts).map((target) => {
    const question = questionOf(place, client, scenario, target);
    return [target, (attempt) => client.ask(question, attempt)];
  });
  const options = {
    scene: `drill/${scenario.id}`,
    promptVersion: place.promptVersion,
    sink: (line) => lines.push(line),
    targets: Object.fromEntries(asks.filter(([target]) => bound.policy.targets.includes(target))),
  };
  return { end: patiently(make(client, bound.bind(options), Object.fromEntries(asks).primary, lines)) };
}

/** Its value, if it has ended by then. */
function patiently(end) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(reject, PATIENCE_MS, new Error(`a call has not ended within ${PATIENCE_MS} ms`));
  });
  return Promise.race([end, late]).finally(() => clearTimeout(timer));
}

async function make({ executes, text }, bound, ask, lines) {
  const began = performance.now();
  const { value, error } = await (executes
    ? bound.execute(ask)
    : bound.call(ask).then(
        (value) => ({ value }),
        (error) => ({ error }),
      ));
  const elapsed_ms = performance.now() - began;
  const records = lines.map((line) => JSON.parse(line));
  const receipts = records.filter((record) => record.record === undefined);
  const last = receipts.filter((receipt) => receipt.attempt !== null).at(-1);
  return {
    elapsed_ms,
    answer: value && text(value),
    error,
    lines,
    records,
    receipts,
    ended: records.find((record) => record.record === "call_ended") ?? {},
    failure: last?.kind ? last : {},
  };
}

function questionOf(place, client, scenario, target) {
  return {
    url: scenario.to === "full backlog" ? place.backlog : place.gateway,
    drill: drillId(scenario, client.name),
    model: `${target}-model`,
    prompt: `Say hello. ${scenario.prompts[target]}`,
  };
}

/** Every request so far by target; under `other`, what no target has asked for. */
async function requests(place, client, scenario) {
  const id = drillId(scenario, client.name);
  const behaviours = (await stats(place.gateway, id))[id]?.behaviours ?? {};
  const targets = Object.fromEntries(Object.entries(scenario.prompts).map(([target, prompt]) => [prompt, target]));
  const found = { other: [] };
  for (const target of Object.keys(scenario.prompts)) found[target] = [];
  for (const [marker, behaviour] of Object.entries(behaviours)) {
    found[targets[`#[${marker}]`] ?? "other"].push(...behaviour.requests);
  }
  return found;
}

/** The names of policy JSON as JavaScript has them. */
function camel(value) {
  if (Array.isArray(value)) return value.map(camel);
  if (typeof value !== "object" || value === null) return value;
  const spelled = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(value).map(([name, held]) => [spelled(name), camel(held)]));
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
