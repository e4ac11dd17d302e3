/** One leg of a call that travels, in JavaScript: `leg.py` is the same in Python, and `travel.mjs` says what a leg is. */

/** Takes a call up, plays its outcomes, and lays it down again. `reprieve` is the package, whichever engine it has. */
export function leg({ Call, Policy }, task) {
  const { epoch_ns: epoch, policy, seed, ids } = task;
  let at = task.at_ns;
  const wall = () => task.wall_ms + Math.floor(at / 1e6);
  let call;
  let action;
  if (task.snapshot) {
    [call, action] = Call.restore(task.snapshot, epoch + at, wall());
  } else {
    const [traceId, idempotencyKey] = [ids.trace_id, ids.idempotency_key];
    const named = { traceId, idempotencyKey, scene: ids.scene, promptVersion: ids.prompt_version };
    call = new Call(Policy.fromJSON(policy), seed, { ids: named });
    action = call.begin(epoch + at);
  }
  const attempts = [];
  for (const { took_ns: took, ...outcome } of task.outcomes) {
    if (action.kind === "retry" || action.kind === "fallback") {
      at += action.afterNs;
      action = call.begin(epoch + at);
    }
    if (action.kind !== "attempt") throw new Error(`no attempt was begun, but ${action.kind}`);
    attempts.push(action.number);
    at += took;
    action = call.onOutcome(epoch + at, action.number, outcome);
  }
  if (action.kind === "done") return { attempts, kind: "done", records: call.records };
  at += task.pause_ns;
  return { attempts, kind: action.kind, at_ns: at, snapshot: call.snapshot(epoch + at, wall()) };
}
