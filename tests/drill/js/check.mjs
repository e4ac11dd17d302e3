/** Holds what was seen to what is expected, as `../python/check.py` does. Every difference is a sentence. */

/** What differs in a step; nothing if all is as expected. */
export function differences(expect, seen) {
  const found = [...ofStep(expect, seen), ...ofGateway(expect, seen)];
  for (const [i, call] of seen.calls.entries()) {
    const which = seen.calls.length > 1 ? `call ${i + 1}: ` : "";
    for (const difference of [...ofCall(expect, call), ...ofRecords(call, seen)]) found.push(which + difference);
  }
  return found;
}

/** Requests that no attempt explains, however late they came: both count by drill. */
export function hidden(attempts, counts) {
  return Object.entries(counts)
    .filter(([drill, count]) => count > (attempts[drill] ?? 0))
    .map(([drill, count]) => `${drill}: ${attempts[drill] ?? 0} attempts, and the gateway has seen ${count} requests`);
}

/** How many connections a browser keeps to one server. */
const KEPT = 6;

/**
 * How many requests the browser has sent again by itself: it does where a kept connection is reset before it has brought
 * an answer, and tells nobody. Such a request has the same idempotency key, and is no attempt; none is forgiven elsewhere.
 */
export function resent({ resends, calls, requests }) {
  const reset = calls.flatMap((call) => call.receipts).filter((receipt) => receipt.kind === "transport").length;
  if (!resends || reset === 0) return 0;
  const attempts = calls.reduce((total, { ended }) => total + (ended.attempts ?? 0), 0);
  const more = Object.values(requests).flat().length - attempts;
  return more > 0 && more <= reset * KEPT ? more : 0;
}

/** Equal, within `[lowest, highest]` (`null` is no limit), or like `"~a regular expression"`. */
export function fits(expected, value) {
  if (Array.isArray(expected)) {
    const [low, high] = expected;
    return typeof value === "number" && low <= value && (high === null || value <= high);
  }
  if (typeof expected === "string" && expected.startsWith("~")) {
    return typeof value === "string" && new RegExp(expected.slice(1)).test(value);
  }
  return expected === value;
}

/** An expected value, for people. */
export function words(expected) {
  if (!Array.isArray(expected)) return String(expected);
  const [low, high] = expected;
  if (high === null) return `at least ${low}`;
  return high === low + 1 ? `${low} or ${high}` : `${low} to ${high}`;
}

/** How many there are of each. */
export function counted(values) {
  const counts = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function differs(what, expected, value) {
  if (fits(expected, value)) return [];
  const shown = typeof value === "number" ? Math.round(value) : value;
  return [`${what}: expected ${words(expected)}, seen ${shown}`];
}

function* ofStep(expect, seen) {
  if (expect.breaker !== undefined) yield* differs("breaker", expect.breaker, seen.breaker);
  if (isObject(expect.target)) {
    const targets = counted(seen.calls.map((call) => call.ended.target));
    const ids = new Set([...Object.keys(expect.target), ...Object.keys(targets)]);
    for (const id of ids) yield* differs(`calls that ended on ${id}`, expect.target[id] ?? 0, targets[id] ?? 0);
  }
  const breakers = seen.calls.flatMap((call) => call.records).filter((record) => record.record === "breaker");
  const moves = breakers.sort((a, b) => a.at_ms - b.at_ms).map((record) => `${record.from} > ${record.to}`);
  yield* differs("transitions", (expect.transitions ?? []).join(", "), moves.join(", "));
}

/** What a scenario says of each of its calls. */
function* ofCall(expect, call) {
  for (const name of ["outcome", "reason", "attempts", "target"]) {
    if (name in expect && !isObject(expect[name])) yield* differs(name, expect[name], call.ended[name]);
  }
  for (const name of ["category", "kind"]) if (name in expect) yield* differs(name, expect[name], call.failure[name]);
  if ("elapsed_ms" in expect) yield* differs("elapsed_ms", expect.elapsed_ms, call.elapsed_ms);
  for (const [name, value] of Object.entries(expect.ended ?? {}))
    yield* differs(`ended.${name}`, value, call.ended[name]);
  if (expect.receipts) yield* differs("receipts", expect.receipts.length, call.receipts.length);
  for (const [i, fields] of (expect.receipts ?? []).entries()) {
    const receipt = call.receipts[i] ?? {};
    for (const [name, value] of Object.entries(fields)) {
      yield* differs(`receipt ${i + 1}, ${name}`, value, receipt[name] ?? null);
    }
  }
}

/** What holds for every call. */
function* ofRecords(call, { isOwn }) {
  const traces = new Set(call.records.map((record) => record.trace_id).filter((id) => id !== undefined));
  yield* differs("trace ids", 1, traces.size);
  const numbers = call.receipts.map((receipt) => receipt.attempt).filter((attempt) => attempt !== null);
  if (numbers.length !== (call.ended.attempts ?? 0) || numbers.some((number, i) => number !== i + 1)) {
    yield `attempts are numbered ${numbers}, and the call counts ${call.ended.attempts}`;
  }
  const { outcome } = call.ended;
  if ((outcome === "success") !== Boolean(call.answer))
    yield `the outcome is ${outcome}, and the answer ${call.answer}`;
  if (call.error === undefined) return;
  const cut = outcome === "cancelled" || call.failure.kind === "timeout";
  if (!(outcome === "failure" && isOwn(call.error)) && !(cut && isOurs(call.error)))
    yield `the call threw ${call.error}`;
}

/** Ours, or the reason that a signal was aborted with. */
function isOurs(error) {
  return ["AttemptTimeout", "CallCancelled", "AbortError"].includes(error?.name);
}

/** No request is missing, none is hidden, and each belongs to its call. */
function* ofGateway(expect, seen) {
  const more = resent(seen);
  for (const [target, requests] of Object.entries(seen.requests)) {
    yield* differs(
      `requests to ${target}`,
      expect.requests[target] ?? 0,
      requests.length - (target === "primary" ? more : 0),
    );
  }
  const every = Object.values(seen.requests)
    .flat()
    .sort((a, b) => a.at_ms - b.at_ms);
  const made = new Map(seen.calls.map(({ ended }) => [ended.idempotency_key, ended.attempts ?? 0]));
  for (const [key, count] of Object.entries(counted(every.map((request) => request["idempotency-key"])))) {
    const attempts = made.get(key) ?? 0;
    if (count > attempts + (made.has(key) ? more : 0))
      yield `${count} requests with idempotency key ${key}, whose call made ${attempts} attempts`;
  }
  // Plain `fetch` does not count.
  const retried = new Set(
    every.map((request) => request["x-stainless-retry-count"] ?? (seen.counts ? "nothing" : "0")),
  );
  for (const count of retried) yield* differs("x-stainless-retry-count", "0", count);
  if ("gap_ms" in expect)
    yield* differs("gap_ms", expect.gap_ms, every.length > 1 ? every[1].at_ms - every[0].at_ms : null);
}
