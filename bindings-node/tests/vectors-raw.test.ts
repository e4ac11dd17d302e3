/** Every vector through both raw engines. A call that begins plainly runs a second time from its late start. */
import { test } from "node:test";

import type { Engine, EngineCall, EngineGuards, EnginePolicy, EngineRun } from "../driver/engine.js";
import { engines } from "./engines.js";
import { type Case, check, Differs, ns, playAll, topics, verb } from "./vectors.js";

for (const [name, engine] of Object.entries(engines)) {
  const played: Record<string, (one: Case) => void> = {
    call: (one) => {
      new World(engine, one, false).play();
      if (startsPlainly(one)) new World(engine, one, true).play();
    },
    classify: (one) => classify(engine, one),
    delay: (one) => delay(engine, one),
    mask: (one) => {
      const off = JSON.stringify(one.off ?? []);
      check(one.expect, engine.mask(one.text, off));
    },
    number: (one) => number(engine, one),
    policy: (one) => policy(engine, one),
    stream: (one) => stream(engine, one),
  };
  for (const topic of topics) {
    test(`vectors, ${topic}, raw ${name}`, async (t) => {
      const play = played[topic] ?? (() => {});
      t.diagnostic(await playAll(topic, `raw ${name}`, play, (one) => unplayable(topic, one)));
    });
  }
}

function unplayable(topic: string, one: Case): string | undefined {
  if (topic === "guard")
    return "a machine alone is not exported: it is met in a call, as the `call` cases with guards do";
  if (topic === "policy" && one.unit === "s") return "a bare number is a duration in milliseconds in JavaScript";
  if (one.rules?.some((rule: Case) => Object.keys(rule.when).length === 0)) {
    return "a rule without a condition: a policy, which holds the rules, refuses it";
  }
  return undefined;
}

/** What the engine threw, as JSON. */
function refused(error: unknown): Case {
  return JSON.parse((error as Error).message);
}

function policyOf(engine: Engine, one: Case): EnginePolicy {
  const start = one.preset === undefined ? undefined : engine.Policy.preset(one.preset);
  return new engine.Policy(JSON.stringify(one.policy ?? {}), start);
}

function classify(engine: Engine, { evidence, rules = [], expect }: Case): void {
  const holds = new engine.Policy(JSON.stringify({ rules }));
  check(expect, JSON.parse(engine.classify(JSON.stringify(evidence), holds)));
}

function stream(engine: Engine, { event, expect, finishes }: Case): void {
  const text = typeof event === "string" ? event : JSON.stringify(event);
  check(expect, engine.streamItem(text));
  if (finishes !== undefined) check(finishes, engine.streamFinishes(text));
}

function delay(engine: Engine, one: Case): void {
  const [previous, wish] = [one.previous, one.retry_after].map((text) => (text ? ns(text) : undefined));
  const built = policyOf(engine, one);
  const seen = built.delay(one.kind, String(one.seed), one.attempt ?? 1, one.n ?? 1, previous, wish);
  if (seen !== ns(one.expect)) throw new Differs(`expected ${one.expect}, saw ${seen} ns`);
}

function number(engine: Engine, { text, number, unit, expect }: Case): void {
  let seen: Case;
  try {
    seen = { ns: engine.parseDuration(text ?? number, unit === undefined ? 1 : ns(`1${unit}`)) };
  } catch (error) {
    seen = { error: refused(error).allowed };
  }
  if (expect.error === undefined) check(expect, seen);
  else if (!seen.error?.includes(expect.error))
    throw new Differs(`expected ${expect.error}, saw ${JSON.stringify(seen)}`);
}

/** Read from JSON where a bare number is no duration, from an object where it is one in milliseconds. */
function policy(engine: Engine, one: Case): void {
  let seen: Case;
  try {
    const text = one.text ?? JSON.stringify(one.policy ?? {});
    let built = one.unit ? new engine.Policy(text) : engine.Policy.fromJson(text);
    if (one.preset !== undefined) built = engine.Policy.preset(one.preset);
    if (one.replace !== undefined) built = new engine.Policy(JSON.stringify(one.replace), built);
    const written = built.toJson();
    check(JSON.parse(written), JSON.parse(engine.Policy.fromJson(written).toJson()));
    seen = { valid: JSON.parse(written) };
  } catch (error) {
    if (error instanceof Differs) throw error;
    seen = { error: refused(error) };
  }
  check(one.expect, seen);
}

/** The call can be started late: it begins at once, and nothing but its policy bounds it. */
function startsPlainly({ policy, guards, run, options, steps }: Case): boolean {
  return (
    !policy?.hedge && !guards && !run && !options && steps[0].do === "begin" && steps[0].expect?.attempt !== undefined
  );
}

/** What a case plays in: a call, the calls that were named, and the guards and the run they share. */
class World {
  private readonly guards: EngineGuards | undefined;
  private readonly run: EngineRun | undefined;
  private readonly policy: EnginePolicy;
  private readonly parked = new Map<string, EngineCall>();
  private call: EngineCall;
  private name = "";
  private kept = "";

  constructor(
    private readonly engine: Engine,
    private readonly one: Case,
    private late: boolean,
  ) {
    this.guards = one.guards ? new engine.Guards() : undefined;
    this.run = one.run ? new engine.Run(JSON.stringify(one.run)) : undefined;
    this.policy = policyOf(engine, one);
    this.call = this.fresh(this.policy, one.seed, one.options);
  }

  play(): void {
    for (const [i, { at, do: what, expect }] of this.one.steps.entries()) {
      try {
        const seen = this.act(ns(at), what);
        if (expect !== undefined) check(expect, seen);
      } catch (error) {
        const from = this.late ? "from its late start, " : "";
        throw new Differs(`${from}step ${i} at ${at}, ${JSON.stringify(what)}: ${(error as Error).message}`);
      }
    }
  }

  private act(at: number, what: Case): unknown {
    const [word, body] = verb(what) as [string, Case];
    switch (word) {
      case "begin":
        return this.begin(at);
      case "success":
      case "failure":
      case "evidence":
        return this.outcome(at, what);
      case "cancel":
        return told(() => this.call.cancel(at));
      case "first_item":
        return told(() => this.call.firstItem(at, body?.attempt ?? this.call.attempts()));
      case "hedge":
        return told(() => this.call.hedge(at));
      case "call":
        return this.change(body);
      case "snapshot":
        this.kept = this.call.snapshot(at, body.wall);
        return;
      case "restore": {
        const options = JSON.stringify({ countSuspended: body.count_suspended, repairs: body.repairs });
        this.call = this.engine.Call.restore(this.kept, at, body.wall, options, this.guards, this.run);
        return told(() => this.call.restored());
      }
      case "report":
        return this.guards?.report(body.queue_depth, body.cost_ratio);
      case "run_cancel":
        return this.run?.cancel(String(body));
      case "receipts":
        return this.lines().filter((line) => line.record === undefined);
      case "ended":
        return this.lines().find((line) => line.record === "call_ended");
      default:
        throw new Differs(`no such thing to do: ${word}`);
    }
  }

  private begin(at: number): unknown {
    if (!this.late || this.call.attempts() > 0 || this.call.state() !== "ready") return told(() => this.call.begin(at));
    this.call = this.engine.Call.started(this.policy, String(this.one.seed), at, '{"recorded": true}');
    const [target] = JSON.parse(this.policy.targets());
    return { attempt: { number: 1, target, timeout_ns: this.policy.firstTimeoutNs() } };
  }

  private outcome(at: number, what: Case): unknown {
    const { attempt = this.call.attempts(), success, ...rest } = what;
    // What a success brings with it stands inside it in the vectors, beside it on the wire.
    const outcome = success === undefined ? rest : { ...rest, ...success, success: {} };
    return told(() => this.call.onOutcome(at, attempt, JSON.stringify(outcome)));
  }

  private fresh(policy: EnginePolicy, seed: unknown, options: Case = {}): EngineCall {
    const { ends_by, repairs, ...ids } = options;
    const endsBy = ends_by === undefined ? undefined : ns(ends_by);
    const given = JSON.stringify({ ids: { trace_id: "", ...ids }, endsBy, repairs, recorded: true });
    return new this.engine.Call(policy, String(seed), given, this.guards, this.run);
  }

  private change(to: string | Case): void {
    let next: EngineCall | undefined;
    if (typeof to === "string") {
      next = this.parked.get(to);
      if (!next) throw new Differs(`no call is named ${to}`);
    } else {
      const own = to.policy !== undefined || to.preset !== undefined;
      next = this.fresh(own ? policyOf(this.engine, to) : this.policy, to.seed ?? this.one.seed, to.options);
    }
    this.parked.set(this.name, this.call);
    this.name = typeof to === "string" ? to : (to.name ?? "");
    this.call = next;
  }

  private lines(): Case[] {
    return JSON.parse(this.call.lines()).map((line: string) => JSON.parse(line));
  }
}

/** An action, or that the engine refused to act. */
function told(ask: () => string): unknown {
  try {
    return JSON.parse(ask());
  } catch (error) {
    const { error: kind } = refused(error);
    if (kind !== "misuse") throw error;
    return { error: kind };
  }
}
