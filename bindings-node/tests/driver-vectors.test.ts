/**
 * Every `call` vector through the driver, over both engines: once as a handle's call, and where nothing but its policy
 * bounds a call once more with the happy path's own first attempt. Time stands still but for the case; what the machine
 * answered is taken down on its way to the driver.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { install } from "../driver/clock.js";
import type { Engine } from "../driver/engine.js";
import {
  type Action,
  type Attempt,
  Call,
  Failure,
  Guards,
  type Handle,
  MisuseError,
  Policy,
  Run,
  setEngine,
} from "../driver/index.js";
import { look } from "../driver/timers.js";
import { engines } from "./engines.js";
import { type Case, check, Differs, ns, playAll, verb } from "./vectors.js";
import { type Heard, overheard } from "./vectors-heard.js";
import { type Made, Streamed } from "./vectors-stream.js";

const MODES = ["as a handle", "from its first failure"] as const;

for (const [name, engine] of Object.entries(engines)) {
  for (const mode of MODES) {
    test(`vectors, call, driver over ${name}, ${mode}`, async (t) => {
      const late = mode !== MODES[0];
      const line = await inStillTime(() =>
        playAll(
          "call",
          `${name} ${mode}`,
          (one) => new World(engine, one, late).play(),
          (one) => unplayable(one, late),
        ),
      );
      t.diagnostic(line);
    });
  }
}

/** Why a driver cannot be made to do what the case says; read off its steps. */
function unplayable(one: Case, late: boolean): string | undefined {
  if (one.raw_only) return String(one.raw_only);
  if (one.options?.client) return "what is said of a client comes from its wrapping";
  const steps: { do: Case; at: string; expect?: any }[] = one.steps;
  const words = steps.map((step) => verb(step.do)[0]);
  const streams = isStream(one);
  if (streams && words.includes("snapshot")) return "a stream under way is not written down";
  if (streams && late) return "the call of a stream is made before its first attempt";
  if (steps.some(({ do: what }) => what.usage)) return "a function that throws reports no usage";
  if (standsStill(steps)) return "a driver does not stand still between a wait of zero and its begin";
  if (words[0] === "snapshot") return "a handle's call has begun";
  const abandons = (i: number): boolean =>
    (words[i] === "cancel" && steps[i]?.expect === "pending") || words[i] === "run_cancel";
  const later = (i: number): boolean =>
    words[i] === "success" || (words[i - 1] === "cancel" && steps[i]?.at !== steps[i - 1]?.at);
  if (steps.some((_, i) => abandons(i) && (later(i + 1) || words[i + 1] === "cancel"))) {
    return "a cancelled attempt is abandoned at once: nothing of it comes later";
  }
  if (!late) return undefined;
  if (one.policy?.hedge) return "a policy that hedges makes no attempt by itself";
  if (one.guards || one.run || one.options || words.some((word) => word === "cancel" || word === "snapshot")) {
    return "more than the policy bounds the call: it is not started late";
  }
  if (words.includes("call")) return "one call after the other: played as handles";
  if (words[0] !== "begin" || (words[1] !== "failure" && words[1] !== "evidence")) {
    return "no machine is made where the first attempt does not fail";
  }
  if (steps.some(({ expect }) => expect?.retry?.reason === "too_early")) return "only a handle wakes a call early";
  return undefined;
}

/** Items are spoken of: the case is played as a stream. */
function isStream({ steps }: Case): boolean {
  return steps.some(
    ({ do: what }: Case) => what === "first_item" || what.delivered || what.delivering || what.success?.delivered,
  );
}

/** Something happens to a call that was told not to wait, before it begins. */
function standsStill(steps: { do: Case; at: string; expect?: Case }[]): boolean {
  return steps.some(({ at, expect }, i) => {
    const after = steps[i + 1];
    const told = expect?.retry ?? expect?.fallback;
    if (!told || !after || ns(told.after ?? "0s") !== 0) return false;
    const [word] = verb(after.do);
    return word === "cancel" || word === "snapshot" || (word === "begin" && after.at !== at);
  });
}

let now = 0;
let wall = 0;

/** No timer fires and no time passes, but as a case says. */
async function inStillTime<T>(body: () => Promise<T>): Promise<T> {
  const before = install({ now: () => now, wall: () => wall });
  const { setTimeout: real } = globalThis;
  globalThis.setTimeout = (() => 0) as never;
  try {
    return await body();
  } finally {
    globalThis.setTimeout = real;
    install(before);
  }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** One call, and what is known of it. */
interface Lane extends Heard {
  readonly policy: Policy;
  readonly seed: string;
  readonly options: Case;
  started: boolean;
  handle?: Handle<unknown>;
  stream?: Streamed;
  /** Every attempt by its number, and how to end it. */
  readonly made: Made;
  restored?: Call;
}

class World {
  private readonly guards: Guards | undefined;
  private readonly run: Run | undefined;
  private readonly streams: boolean;
  private readonly parked = new Map<string, Lane>();
  private lane: Lane;
  private name = "";
  private kept = "";
  /** What the step under way says of its failure. */
  private said: { failure?: Failure; retryIf?: boolean; backoff?: string } = {};

  constructor(
    private readonly engine: Engine,
    private readonly one: Case,
    private readonly late: boolean,
  ) {
    now = 0;
    setEngine(() => overheard(engine, () => this.lane));
    this.guards = one.guards ? new Guards() : undefined;
    this.streams = isStream(one);
    const { estimate_tokens: estimateTokens, estimate_cost: estimateCost, ...run } = one.run ?? {};
    this.run = one.run ? new Run({ ...run, estimateTokens, estimateCost }) : undefined;
    this.lane = this.fresh(one);
  }

  async play(): Promise<void> {
    for (const [i, { at, do: what, expect }] of this.one.steps.entries()) {
      now = ns(at);
      try {
        const seen = await this.act(what);
        if (expect !== undefined) check(expect, seen);
      } catch (error) {
        throw new Differs(`step ${i} at ${at}, ${JSON.stringify(what)}: ${(error as Error).message}`);
      }
    }
    for (const lane of [this.lane, ...this.parked.values()]) {
      (lane.handle ?? lane.stream)?.cancel();
      // A call without a handle ends with its attempt, or it would run into its timeout within another case.
      for (const { resolve } of lane.made.values()) resolve(undefined);
    }
    await turn();
  }

  private async act(what: Case): Promise<unknown> {
    const [word, body] = verb(what) as [string, Case];
    const { lane } = this;
    switch (word) {
      case "begin":
        return lane.restored ? wire(() => lane.restored?.begin(now)) : this.begin(lane);
      case "success":
      case "failure":
      case "evidence":
        return this.outcome(lane, what, word);
      case "hedge":
        if (lane.restored) return wire(() => lane.restored?.hedge(now));
        look();
        await turn();
        if (lane.handle?.state === "ended") return "ignored";
        return lane.told.shift() ?? "pending";
      case "cancel":
        if (lane.restored) return wire(() => lane.restored?.cancel(now));
        if (!lane.started) this.start(lane, AbortSignal.abort());
        lane.handle?.cancel();
        lane.stream?.cancel();
        await turn();
        return lane.told.shift();
      case "first_item":
        lane.first = undefined;
        lane.stream?.give(1, body?.attempt);
        await turn();
        // Of an item of an attempt that was superseded the machine is not told.
        return lane.first ?? "ignored";
      case "call":
        return this.change(body);
      case "snapshot":
        wall = body.wall;
        this.kept = (lane.restored ? lane.restored.snapshot(now, wall) : lane.handle?.snapshot()) ?? "";
        return;
      case "restore": {
        wall = body.wall;
        const { guards, run } = this;
        const [call, action] = Call.restore(this.kept, now, wall, {
          repairs: body.repairs,
          countSuspended: body.count_suspended,
          guards,
          run,
        });
        lane.restored = call;
        return wire(() => action);
      }
      case "report":
        return this.guards?.report({ queueDepth: body.queue_depth, costRatio: body.cost_ratio });
      case "run_cancel":
        this.run?.cancel(String(body));
        await turn();
        // The attempt in flight is abandoned at once; its outcome, which comes next in the case, is what counts.
        lane.told = lane.told.filter((action) => action !== "pending");
        return;
      case "receipts":
        return this.lines().filter((line) => line.record === undefined);
      case "ended":
        return this.lines().find((line) => line.record === "call_ended");
      default:
        throw new Differs(`no such thing to do: ${word}`);
    }
  }

  private async begin(lane: Lane): Promise<unknown> {
    if (!lane.started) this.start(lane);
    else if (lane.told.length === 0) lane.handle ? lane.handle.wake() : look();
    await turn();
    return lane.told.shift();
  }

  private async outcome(lane: Lane, what: Case, word: string): Promise<unknown> {
    const { success, failure, evidence, retry_if: retryIf, backoff } = what;
    if (lane.restored) return wire(() => lane.restored?.onOutcome(now, lane.restored.attempts, toWire(what)));
    if (lane.stream) {
      lane.stream.give((what.delivered ?? success?.delivered ?? 0) - lane.stream.got, what.attempt);
      await turn();
    }
    const made = lane.made.get(what.attempt ?? Math.max(...lane.made.keys()));
    // A superseded attempt was abandoned: what comes of it is dropped.
    const late = made?.attempt._over && lane.told.length === 0;
    if (word === "success") {
      made?.resolve(success);
    } else {
      const holds = lane.policy._native;
      const said = failure ?? JSON.parse(this.engine.classify(JSON.stringify(evidence), holds));
      this.said = { failure: new Failure(said), retryIf, backoff };
      const error = said.kind === "cancelled" ? new DOMException("", "AbortError") : new Error(said.message);
      made?.reject(error);
    }
    await turn();
    if (lane.ahead > 0 && lane.told.length === 0) {
      // A success, of which the driver has nobody to tell.
      return JSON.parse(lane.native?.onOutcome(now, 2, JSON.stringify(toWire(what))) ?? "");
    }
    return late && lane.told.length === 0 ? "ignored" : lane.told.shift();
  }

  /** Hears of a second attempt that the driver makes without a machine, and holds it against one. */
  private overhear({ _native: native }: Policy): void {
    const { engine } = this;
    const repeats = native.repeats.bind(native);
    native.repeats = (seed, t0, at, outcome) => {
      const answer = repeats(seed, t0, at, outcome);
      const call = engine.Call.started(native, seed, t0, "{}");
      const told = [call.onOutcome(at, 1, outcome)];
      if (call.state() === "waiting" && JSON.parse(told[0] as string).retry?.after_ns === 0) told.push(call.begin(at));
      const begun = JSON.parse(told[1] ?? "{}").attempt;
      assert.equal(answer ?? undefined, begun?.timeout_ns, "a second attempt at once, or not");
      if (begun) {
        assert.equal(native.endsWith(2), call.isLast());
        this.lane.native = call;
        this.lane.ahead = told.length;
        this.lane.told.push(...told.map((action) => JSON.parse(action)));
      }
      return answer;
    };
  }

  private start(lane: Lane, signal?: AbortSignal): void {
    lane.started = true;
    const bound = lane.policy.bind({
      ...(this.late ? {} : { guards: this.guards, run: this.run }),
      seed: lane.seed,
      traceId: lane.options.trace_id,
      repair:
        lane.options.repairs && Object.fromEntries(lane.options.repairs.map((kind: string) => [kind, () => null])),
      scene: lane.options.scene,
      promptVersion: lane.options.prompt_version,
      classify: () => this.said.failure,
      retryIf: () => this.said.retryIf,
      backoff: () => this.said.backoff,
      signal,
    });
    if (this.streams) {
      lane.stream = new Streamed(bound, lane.made);
      return;
    }
    const fn = (attempt: Attempt): Promise<unknown> =>
      new Promise((resolve, reject) => {
        lane.made.set(attempt.number, { attempt, resolve, reject });
        // The machine hears of the first attempt when it has failed.
        const { number, target, timeout } = attempt;
        if (this.late && number === 1) lane.told.push({ attempt: { number, target, timeout_ns: timeout * 1e6 } });
      });
    if (this.late) bound.call(fn).catch(() => {});
    else lane.handle = bound.start(fn);
  }

  private fresh({ policy, preset, seed, options = {} }: Case): Lane {
    const own = (policy ?? preset) ? policyOf(policy, preset) : policyOf(this.one.policy, this.one.preset);
    this.overhear(own);
    const made = new Map();
    return { policy: own, seed: String(seed ?? this.one.seed), options, told: [], ahead: 0, made, started: false };
  }

  private change(to: string | Case): void {
    const next = typeof to === "string" ? this.parked.get(to) : this.fresh(to);
    if (!next) throw new Differs(`no call is named ${to}`);
    this.parked.set(this.name, this.lane);
    this.name = typeof to === "string" ? to : (to.name ?? "");
    this.lane = next;
  }

  private lines(): Case[] {
    if (this.lane.restored) return this.lane.restored.records;
    return JSON.parse(this.lane.native?.lines() ?? "[]").map((line: string) => JSON.parse(line));
  }
}

function policyOf(fields: Case = {}, preset?: string): Policy {
  return preset === undefined ? Policy.fromJSON(fields) : Policy.preset(preset as never).with(fields);
}

/** What a success brings with it stands inside it in the vectors, beside it on the wire. */
function toWire({ success, ...rest }: Case): Case {
  return success === undefined ? rest : { ...rest, ...success, success: {} };
}

/** An action of the public surface as `expect` has it, or that it was refused. */
function wire(ask: () => Action | undefined): unknown {
  try {
    const { kind, ...held } = ask() as Action;
    const named = Object.entries(held).map(([name, value]) => [
      name.replace(/Ns$/, "_ns").replace("resumeIn", "resume_in").replace("hedgeAfter", "hedge_after"),
      value,
    ]);
    return named.length > 0 ? { [kind]: Object.fromEntries(named) } : kind;
  } catch (error) {
    if (error instanceof MisuseError) return { error: "misuse" };
    throw error;
  }
}
