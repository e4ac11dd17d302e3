/** The driver's promises, over one engine: a file for each runs them, so that nothing of one is met in the other. */
import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, mock, test } from "node:test";
import { inspect } from "node:util";
import type { Engine } from "../driver/engine.js";
import {
  type Attempt,
  AttemptTimeout,
  BadOutput,
  Breaker,
  BudgetExhausted,
  Call,
  CallCancelled,
  CircuitOpen,
  ConfigError,
  CoolingDown,
  classify,
  currentAttempt,
  DeadlineExceeded,
  Failure,
  faults,
  Guards,
  MisuseError,
  Policy,
  type PolicyFields,
  Result,
  RetryError,
  RetryExhausted,
  Run,
  retry,
  Shed,
  SnapshotError,
  setContext,
  setEngine,
  traceOf,
} from "../driver/index.js";
import { metered } from "../driver/inner.js";
import { virtual } from "../driver/testing.js";
import { engines } from "./engines.js";

const QUICK = { backoff: { kind: "constant", base: 0 }, jitter: { kind: "none" } } as const;

class Status extends Error {
  constructor(
    readonly status: number,
    readonly headers: Record<string, string> = {},
  ) {
    super(`status ${status}`);
  }
}

/** Fails so many times, then answers how often it was called. */
function flaky(failures: number, error: unknown = new Status(500)): (attempt: Attempt) => Promise<number> {
  let calls = 0;
  return async () => {
    calls += 1;
    if (calls <= failures) throw error;
    return calls;
  };
}

const never = (): Promise<never> => new Promise(() => {});
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
};

async function thrown(promise: Promise<unknown>): Promise<any> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

export function suite(name: string): void {
  const engine = engines[name] as Engine;
  describe(`driver over ${name}`, () => {
    setEngine(() => engine);
    test("retries until it succeeds, and tells each attempt what it is", async () => {
      const seen: unknown[] = [];
      const value = await retry(
        async (attempt) => {
          seen.push([
            attempt.number,
            attempt.target,
            attempt.isLast,
            attempt.timeout,
            attempt.traceId,
            attempt.idempotencyKey,
          ]);
          if (attempt.number < 3) throw new Status(500);
          return "done";
        },
        { ...QUICK, attemptTimeout: 1000 },
      );
      assert.equal(value, "done");
      const [[, , , , traceId, key] = []] = seen as any[][];
      assert.match(traceId, /^[0-9a-f]{32}$/);
      assert.match(key, /^[0-9a-f]{32}$/);
      assert.deepEqual(
        seen,
        [1, 2, 3].map((n) => [n, "primary", n === 3, 1000, traceId, key]),
      );
    });

    test("a second attempt that follows at once is of the same call, and recorded if it fails as well", async () => {
      const seen: Attempt[] = [];
      const asked: unknown[] = [];
      const policy = new Policy({ ...QUICK, maxAttempts: 2 }).bind({ retryIf: (error) => void asked.push(error) });
      const failed = new Status(500);
      const error = await thrown(
        policy.call((attempt) => {
          seen.push(attempt);
          throw seen.length === 1 ? new Status(503) : failed;
        }),
      );
      assert.equal(error, failed);
      const [one, two] = seen as [Attempt, Attempt];
      assert.deepEqual([two.number, two.target, two.isLast], [2, "primary", true]);
      assert.equal(one.isLast, false);
      assert.deepEqual([one.traceId, one.idempotencyKey], [two.traceId, two.idempotencyKey]);
      assert.equal(traceOf(error)?.traceId, one.traceId);
      assert.deepEqual(
        traceOf(error)?.receipts.map(({ attempt, kind, decision }) => [attempt, kind, decision]),
        [
          [1, "overloaded", "retry"],
          [2, "server_error", "stop"],
        ],
      );
      assert.equal(asked.length, 2, "each failure is asked about once");
    });

    test("an attempt is the last one where the call may make no more, whatever targets are left", async () => {
      const last: [number, boolean][] = [];
      const policy = new Policy({ ...QUICK, maxAttemptsTotal: 2, targets: [{ id: "a" }, { id: "b" }] });
      for (const bound of [policy, policy.bind({ onEvent: () => {} }), policy.with({ maxAttemptsTotal: 1 })]) {
        await thrown(
          bound.call(({ number, isLast }) => {
            last.push([number, isLast]);
            throw new Status(500);
          }),
        );
      }
      assert.deepEqual(
        last,
        [false, true, false, true, true].map((isLast, at) => [(at % 2) + 1, isLast]),
      );
    });

    test("what a client hides is looked for in every attempt, at once as it may follow", async () => {
      const asked: number[] = [];
      const hidden = ({ number }: Attempt): string => {
        asked.push(number);
        return `{"record":"hidden","attempt":${number}}`;
      };
      const looking = metered(new Policy(QUICK), { usage: () => undefined, hidden }, undefined);
      const error = await thrown(looking.call(() => Promise.reject(new Status(500))));
      assert.deepEqual(asked, [1, 2, 3]);
      assert.deepEqual(
        traceOf(error)?.lines.flatMap((line) => (line.includes("hidden") ? [JSON.parse(line).attempt] : [])),
        [1, 2, 3],
      );
    });

    test("a second attempt that follows at once ends at its timeout and with its call as any other", async () => {
      const late = new Policy({ ...QUICK, attemptTimeout: 20 });
      let why: unknown;
      const third = await late.call((attempt) => {
        if (attempt.number === 1) throw new Status(500);
        if (attempt.number === 3) return attempt.number;
        attempt.signal.onabort = () => {
          why = attempt.signal.reason;
        };
        return never();
      });
      assert.equal(third, 3);
      assert(why instanceof AttemptTimeout);

      const caller = new AbortController();
      const cancelled = thrown(
        retry(({ number }) => (number === 1 ? Promise.reject(new Status(500)) : never()), QUICK, {
          signal: caller.signal,
        }),
      );
      await sleep(5);
      caller.abort("enough");
      assert.equal(await cancelled, "enough");
      assert.equal(getEventListeners(caller.signal, "abort").length, 0);
    });

    test("no second attempt follows where the signal has aborted meanwhile", async () => {
      const caller = new AbortController();
      let calls = 0;
      const failing = (): never => {
        calls += 1;
        caller.abort("enough");
        throw new Status(500);
      };
      assert.equal(await thrown(retry(failing, QUICK, { signal: caller.signal })), "enough");
      assert.equal(calls, 1);
    });

    test("throws the caller's own object, untouched, with its trace beside it", async () => {
      const error = Object.freeze(new Status(400));
      assert.equal(await thrown(retry(flaky(9, error))), error);
      assert.equal(traceOf(error)?.receipts.length, 1);
      assert.match(traceOf(error)?.note ?? "", /gave up after 1 attempt.*not_retryable.*bad_request/);
      assert.equal(traceOf(new Error("outer", { cause: error })), traceOf(error));
      assert.equal(traceOf(new Error("other")), undefined);
    });

    for (const value of [undefined, null, "text", 7, Symbol("s"), () => 1, { status: 400 }]) {
      test(`throws ${String(value)} as it came`, async () => {
        assert.equal(await thrown(retry(() => Promise.reject(value))), value);
        assert.equal(
          await thrown(
            retry(() => {
              throw value;
            }, QUICK),
          ),
          value,
        );
      });
    }

    test("reads what is cyclic, throws in getters, or refuses every question", async () => {
      const cyclic = new Error("a");
      cyclic.cause = new AggregateError([cyclic, new Error("b", { cause: cyclic })]);
      const angry = Object.create(Error.prototype, {
        message: {
          get() {
            throw new Error("no");
          },
        },
        cause: {
          get() {
            throw new Error("no");
          },
        },
      });
      const closed = new Proxy(
        {},
        {
          get() {
            throw new Error("no");
          },
          getPrototypeOf() {
            throw new Error("no");
          },
        },
      );
      const body: Record<string, unknown> = { big: 1n };
      body.self = body;
      const withBody = Object.assign(new Status(400), { error: body });
      for (const error of [cyclic, angry, closed, withBody, Object.assign(new Status(400), { message: "\ud800" })]) {
        assert(await retry(flaky(9, error), QUICK).catch((seen) => seen === error));
      }
    });

    test("a thenable is awaited, and one that never settles is cut at its timeout", async () => {
      // biome-ignore lint/suspicious/noThenProperty: it is what is tested
      assert.equal(await retry(() => ({ then: (done: (n: number) => void) => done(5) })), 5);
      // biome-ignore lint/suspicious/noThenProperty: it is what is tested
      const error = await thrown(retry(() => ({ then() {} }), { ...QUICK, attemptTimeout: 10, maxAttempts: 2 }));
      assert(error instanceof AttemptTimeout && error instanceof RetryError);
      assert.deepEqual(
        [error.name, error.attempts, error.retries, error.stopReason],
        ["AttemptTimeout", 2, 1, "attempts_exhausted"],
      );
      assert.equal(error.failure?.kind, "timeout");
    });

    test("a late result is dropped, no ghost attempt follows, and nothing is left unhandled", async () => {
      const unhandled = mock.fn();
      process.on("unhandledRejection", unhandled);
      let calls = 0;
      let goOn = (): void => {};
      const second = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      const value = await retry(
        async (attempt) => {
          calls += 1;
          if (attempt.number === 1) {
            await second;
            throw new Error("late");
          }
          goOn();
          return attempt.number;
        },
        { ...QUICK, attemptTimeout: 10 },
      );
      await sleep(10);
      assert.deepEqual([value, calls, unhandled.mock.callCount()], [2, 2, 0]);
      process.off("unhandledRejection", unhandled);
    });

    test("an attempt's signal is fresh, aborts at its timeout, and never after a success", async () => {
      const signals: AbortSignal[] = [];
      await retry(
        (attempt) => {
          signals.push(attempt.signal);
          return attempt.number === 1 ? never() : 1;
        },
        { ...QUICK, attemptTimeout: 10 },
      );
      await sleep(20);
      assert.deepEqual(
        signals.map((signal) => signal.aborted),
        [true, false],
      );
      assert(signals[0]?.reason instanceof AttemptTimeout);
    });

    test("the caller's signal ends an attempt and a wait at once, with its own reason", async () => {
      const reason = { mine: true };
      for (const fn of [never, flaky(9)]) {
        const controller = new AbortController();
        const waits = { base: 300_000, max: 300_000 };
        const call = retry(fn, { backoff: waits }, { signal: controller.signal });
        await sleep(5);
        controller.abort(reason);
        const raced = await Promise.race([thrown(call), turns(2).then(() => "slow")]);
        assert.equal(raced, reason);
        assert.equal(getEventListeners(controller.signal, "abort").length, 0);
        assert.equal(traceOf(reason)?.ended?.reason, "cancelled");
      }
    });

    test("a signal that has aborted starts nothing; AbortSignal.timeout and .any work", async () => {
      const fn = mock.fn(never);
      assert.equal(await thrown(retry(fn, {}, { signal: AbortSignal.abort("stop") })), "stop");
      assert.equal(fn.mock.callCount(), 0);
      assert.equal((await thrown(retry(never, {}, { signal: AbortSignal.timeout(5) }))).name, "TimeoutError");
      const controller = new AbortController();
      const any = (AbortSignal as any).any?.([controller.signal, AbortSignal.timeout(60_000)]) ?? controller.signal;
      setTimeout(() => controller.abort(), 5);
      assert.equal((await thrown(retry(never, {}, { signal: any }))).name, "AbortError");
    });

    test("no listener is left after 100,000 calls", async () => {
      const { signal } = new AbortController();
      const bound = new Policy(QUICK).bind({ signal });
      for (let i = 0; i < 100_000; i++) await bound.call(async () => i);
      await Promise.all(Array.from({ length: 100 }, () => bound.call(() => sleep(2))));
      await bound.call(flaky(1));
      assert.equal(getEventListeners(signal, "abort").length, 0);
    });

    test("an AbortError that is nobody's signal's is a cancellation of its own, and not retried", async () => {
      const error = new DOMException("gone", "AbortError");
      const result = await new Policy({ ...QUICK, retryOn: ["unknown"] }).execute(flaky(9, error));
      assert.deepEqual([result.error, result.failure?.kind, result.attempts], [error, "cancelled", 1]);
    });

    test("bad fields are refused by name, in the user's case", async () => {
      const refused: [unknown, RegExp][] = [
        [{ maxAttempts: 0 }, /^maxAttempts: 0 is not allowed; it takes a whole number/],
        [{ maxAttempts: Number.NaN }, /^maxAttempts: NaN /],
        [{ maxAttempts: true }, /^maxAttempts: true /],
        [{ maxAttempts: 3n }, /^maxAttempts: 3 /],
        [{ totalTimeout: -1 }, /^totalTimeout: -1 /],
        [{ totalTimeout: Number.POSITIVE_INFINITY }, /^totalTimeout: Infinity /],
        [{ backoff: { base: "1" } }, /^backoff\.base: "1" .*a number of milliseconds/],
        [{ backoff: { delays: [1, undefined] } }, /^backoff/],
        [{ kinds: { rate_limit: { maxAttempts: -1 } } }, /^kinds\.rate_limit\.maxAttempts: -1 /],
        [{ kinds: { rateLimit: {} } }, /^kinds\.rateLimit: .*rate_limit/],
        [{ targets: [{ id: "a", attemptTimeout: "x" }] }, /^targets\[0\]\.attemptTimeout: "x" /],
        [{ max_attempts: 2 }, /^max_attempts: 2 .*no such field; .*maxAttempts/],
        [{ color: 1 }, /^color: /],
        [null, /^policy: null /],
        ["tool", /^policy: "tool" /],
      ];
      for (const [fields, message] of refused) {
        assert.throws(
          () => new Policy(fields as PolicyFields),
          (error: Error) => {
            assert(error instanceof ConfigError);
            assert.equal(error.name, "ConfigError");
            assert.match(error.message, message);
            return true;
          },
        );
      }
      assert((await thrown(retry(flaky(0), { maxAttempts: -1 }))) instanceof ConfigError);
      assert((await thrown(retry("no function" as never))) instanceof ConfigError);
      assert.deepEqual(new Policy({ maxAttempts: undefined }).toJSON(), new Policy().toJSON());
    });

    test("bad options are refused by name; null takes back", async () => {
      for (const table of [3, "x", true] as never[]) {
        assert.throws(() => new Policy().bind({ repair: table }), /^ConfigError: repair: .* an object from kind/);
      }
      const policy = new Policy({ targets: [{ id: "a" }] });
      const refused: [object, RegExp][] = [
        [{ seed: 1.5 }, /^seed: 1.5 /],
        [{ seed: -1n }, /^seed: -1 /],
        [{ seed: 2n ** 64n }, /^seed: /],
        [{ seed: true }, /^seed: true /],
        [{ traceId: "xyz" }, /^traceId: xyz .*32/],
        [{ signal: {} }, /^signal: .*an AbortSignal/],
        [{ scene: 5 }, /^scene: 5 .*string/],
        [{ onEvent: "x" }, /^onEvent: x .*function/],
        [{ targets: { b() {} } }, /^targets\.b: .*a/],
        [{ unmask: ["nothing"] }, /nothing/],
        [{ colour: 1 }, /^colour: .*the options are scene/],
      ];
      for (const [options, message] of refused)
        assert.throws(() => policy.bind(options), { name: "ConfigError", message });
      for (const seed of [0, "18446744073709551615", 2n ** 64n - 1n]) policy.bind({ seed });
      assert.equal(
        await policy
          .bind({ scene: "x", signal: undefined })
          .bind({ scene: null })
          .call(async () => 1),
        1,
      );
    });

    test("the same seed waits the same", async () => {
      const waits = (): Promise<number[]> =>
        virtual(async (clock) => {
          await thrown(retry(flaky(9), { maxAttempts: 4 }, { seed: 42n }));
          return clock.sleeps;
        });
      assert.deepEqual(await waits(), await waits());
    });

    test("policies: presets, JSON both ways, with, forSkill", () => {
      const llm = Policy.preset("llm");
      assert.deepEqual(llm.targets, ["primary", "backup"]);
      assert.deepEqual(Policy.fromJSON(JSON.stringify(llm)).toJSON(), llm.toJSON());
      assert.deepEqual(Policy.fromJSON(llm.toJSON()).toJSON(), llm.toJSON());
      assert.equal(llm.with({ maxAttempts: 7 }).toJSON().max_attempts, 7);
      assert.deepEqual(Policy.forSkill("s", { s: { fallback_skill_id: "t" }, t: {} }).targets, ["s", "t"]);
      assert.throws(() => Policy.preset("nothing" as never), ConfigError);
      assert.throws(() => Policy.fromJSON("{"), ConfigError);
    });

    test("a result says how it went", async () => {
      const good = await new Policy(QUICK).execute(async () => ({ usage: { prompt_tokens: 3, completion_tokens: 4 } }));
      assert(good instanceof Result && good.ok);
      assert.deepEqual(
        [good.attempts, good.usage, good.stopReason],
        [1, { inputTokens: 3, outputTokens: 4 }, undefined],
      );
      const bad = await new Policy(QUICK).execute(flaky(9));
      assert.deepEqual(
        [bad.ok, bad.attempts, bad.stopReason, bad.failure?.kind, bad.valueOr(5)],
        [false, 3, "attempts_exhausted", "server_error", 5],
      );
      assert(bad.failure instanceof Failure && bad.failure.retriable && bad.failure.serviceFault && !bad.failure.alert);
      assert.equal((await new Policy().execute(() => Promise.reject(undefined))).ok, false);
    });

    test("what a logger writes of a trace is its records", async () => {
      const result = await new Policy({ ...QUICK, maxAttempts: 1 }).execute(() => {
        throw new Status(503);
      });
      const { traceId, note, receipts, ended } = result.trace;
      assert.deepEqual(JSON.parse(JSON.stringify({ result })).result.trace, { traceId, note, receipts, ended });
      assert.equal(inspect(result.trace), `Trace ${traceId} of 1 receipts`);
    });

    test("our own errors are of the kinds that they are of in every language", () => {
      for (const Class of [ConfigError, RetryError, BudgetExhausted, MisuseError, AttemptTimeout]) {
        assert.equal(Class.name, new (Class as new () => Error)().name);
      }
      const kinds = {
        invalid_output: BadOutput,
        budget_exhausted: BudgetExhausted,
        cancelled: CallCancelled,
        circuit_open: CircuitOpen,
        timeout: DeadlineExceeded,
        shed: Shed,
      };
      for (const [kind, Ours] of Object.entries(kinds)) assert.equal(classify(new Ours("no")).kind, kind);
      const { kind } = classify(new Error("outer", { cause: new CoolingDown("not yet") }));
      assert.equal(kind, "circuit_open");
    });

    test("wrapped: the caller's own error is the cause", async () => {
      const own = new Status(500);
      const error = await thrown(retry(flaky(9, own), QUICK, { onGiveUp: "wrapped" }));
      assert(error instanceof RetryExhausted);
      assert.deepEqual([error.cause, error.attempts, error.failure?.kind], [own, 3, "server_error"]);
      assert.equal(traceOf(error)?.receipts.length, 3);
      assert.match(`${traceOf(error)}`, /^trace [0-9a-f]{32}\n {2}#1 primary {4}\|█[^|]{40}\| \w+ -> retry in /);
    });

    test("a chain falls back, with a function for each target", async () => {
      const policy = new Policy({ ...QUICK, maxAttempts: 1, targets: [{ id: "a" }, { id: "b" }] });
      const bound = policy.bind({ targets: { b: (attempt) => `from ${attempt.target}` } });
      assert.equal(await bound.call(flaky(9) as never), "from b");
    });

    test("functions of the user's own decide, and never break a call", async () => {
      const policy = new Policy({ ...QUICK, retryOn: ["unknown"] });
      const plain = new Error("plain");
      const count = async (options: object): Promise<number> =>
        (await policy.bind(options).execute(flaky(9, plain))).attempts;
      const fail = (): never => {
        throw new Error("mine");
      };
      const before = faults();
      const warned = mock.method(console, "warn", () => {});
      assert.equal(await count({ retryIf: () => false }), 1);
      assert.equal(await count({ classify: () => "bad_request" }), 1);
      assert.equal(await count({ classify: () => "no such kind" }), 3);
      assert.equal(await count({ classify: fail, retryIf: fail, backoff: fail, onEvent: fail, sink: fail }), 3);
      assert.equal(await count({ retryIf: async () => false, sink: () => Promise.reject(new Error("mine")) }), 3);
      assert.equal(await count({ backoff: () => Number.NaN }), 3);
      warned.mock.restore();
      for (const role of ["classify", "retryIf", "backoff", "onEvent", "sink"]) {
        assert((faults()[role] ?? 0) > (before[role] ?? 0), role);
      }
      const waits = await virtual(async (clock) => {
        await policy
          .with({ backoff: { max: "1m" } })
          .bind({ backoff: (_, n) => n * 100 })
          .execute(flaky(9, plain));
        return clock.sleeps;
      });
      assert.deepEqual(waits, [100, 200]);
    });

    test("records go to the sink, events to the listener, in the schema of every language", async () => {
      const lines: string[] = [];
      const events: string[] = [];
      const stream = { write: (text: string) => lines.push(text) };
      const bound = new Policy(QUICK).bind({ sink: stream, onEvent: (event) => events.push(event.event), scene: "s" });
      await bound.call(flaky(1));
      assert.deepEqual(events, ["attempt_started", "attempt_failed", "will_retry", "attempt_started", "succeeded"]);
      const records = lines.map((line) => JSON.parse(line));
      assert.deepEqual(
        records.map((record) => [record.scene, record.decision]),
        [
          ["s", "retry"],
          ["s", "done"],
          ["s", "done"],
        ],
      );
      assert(lines.every((line) => line.endsWith("}\n")));
    });

    test("a handle: state, events, wake, cancel, snapshot, the value", async () => {
      const policy = new Policy({ backoff: { base: 300_000, max: 300_000 }, jitter: { kind: "none" } });
      const handle = policy.start(flaky(1));
      await sleep(2);
      assert.equal(handle.state, "waiting");
      assert.deepEqual(
        handle.events.map((event) => event.event),
        ["attempt_started", "attempt_failed", "will_retry"],
      );
      handle.wake();
      await sleep(1);
      assert.equal(handle.state, "waiting");
      const [call, action] = Call.restore(handle.snapshot(), 0, Date.now());
      assert.deepEqual([call.state, action.kind, action.reason], ["waiting", "retry", "server_error"]);
      handle.cancel("enough");
      const error = await thrown(Promise.resolve(handle));
      assert(error instanceof CallCancelled);
      assert.match(error.message, /^enough/);
      assert(error.cause instanceof Status);
      assert.equal(handle.state, "ended");
      assert.equal((await handle.result).stopReason, "cancelled");
      assert.equal(await policy.start(async () => 3), 3);
      // A handle that nobody awaits leaves no unhandled rejection.
      policy.start(flaky(9)).cancel();
    });

    test("a handle cancels the attempt under way", async () => {
      let signal: AbortSignal | undefined;
      const handle = new Policy().start((attempt) => {
        signal = attempt.signal;
        return never();
      });
      handle.cancel();
      assert((await handle.result).error instanceof CallCancelled);
      assert(signal?.aborted);
    });

    test("a run: its gate, its budget, its deadline", async () => {
      const run = new Run({ attempts: 2 });
      const result = await new Policy(QUICK).bind({ run }).execute(flaky(9));
      assert.deepEqual([result.attempts, result.stopReason], [2, "run_budget_exhausted"]);
      const other = new Run();
      const waits = { base: 300_000, max: 300_000 };
      const waiting = new Policy({ backoff: waits }).bind({ run: other }).execute(flaky(9));
      const flying = new Policy().bind({ run: other }).execute(never);
      await sleep(2);
      other.cancel("user left");
      for (const ended of [await waiting, await flying]) assert(ended.error instanceof CallCancelled);
      assert.equal(other.ended, true);
      assert.throws(() => new Run({ attempts: -1 }), ConfigError);
      assert.throws(() => new Run({ deadline: "soon" }), ConfigError);
    });

    test("guards: a breaker opens, is shared, and tells when it may work", async () => {
      const guards = new Guards();
      const policy = new Policy({ ...QUICK, maxAttempts: 1, breaker: { consecutiveFailures: 1, openFor: "30s" } });
      const bound = policy.bind({ guards });
      await thrown(bound.call(flaky(9)));
      assert.equal(guards.breakerState(policy), "open");
      const error = await thrown(bound.call(async () => 1));
      assert(error instanceof CircuitOpen);
      assert((error.resumeIn ?? 0) > 29_000);
      assert.equal(await policy.call(async () => 1), 1);
      guards.reset();
      assert.equal(await bound.call(async () => 1), 1);
      const breaker = new Breaker({ consecutiveFailures: 1 });
      await thrown(breaker.wrap(flaky(9))(undefined as never));
      assert.equal(breaker.state, "open");
      breaker.reset();
      assert.equal(breaker.state, "closed");
    });

    /** Counts how often a set was asked whether it is calm. */
    function asking(guards: Guards): () => number {
      const { _native: native } = guards as any;
      const { calm } = native;
      let asked = 0;
      native.calm = (...about: unknown[]) => {
        asked += 1;
        return calm.apply(native, about);
      };
      return () => asked;
    }

    const counting = (consecutiveFailures: number, openFor = "30s"): Policy =>
      new Policy({ ...QUICK, maxAttempts: 1, breaker: { consecutiveFailures, openFor } });
    const fine = async (): Promise<string> => "fine";

    test("calm guards are asked once, and their breaker opens all the same", async () => {
      const policy = counting(5);
      const asked = asking(policy.guards);
      for (let i = 0; i < 9; i++) assert.equal(await policy.call(fine), "fine");
      const { signal } = new AbortController();
      for (let i = 0; i < 9; i++) assert.equal(await policy.bind({ signal }).call(fine), "fine");
      assert.equal(asked(), 1);
      // A success in between starts the count anew.
      for (const failures of [4, 5]) {
        for (let i = 0; i < failures; i++) {
          assert.equal(policy.guards.breakerState(policy), "closed");
          const error = await thrown(policy.call(flaky(9)));
          assert.equal(traceOf(error)?.receipts.length, 1);
        }
        await policy.call(fine).catch((error) => assert(failures === 5 && error instanceof CircuitOpen));
      }
      assert.equal(policy.guards.breakerState(policy), "open");
      policy.guards.reset();
      const before = asked();
      for (let i = 0; i < 9; i++) assert.equal(await policy.call(fine), "fine");
      assert.equal(asked() - before, 1);
    });

    test("a call that began in a calm tells how it ended when the calm is over", async () => {
      const policy = counting(2);
      const { guards } = policy;
      const asked = asking(guards);
      let end = (_: string): void => {};
      const slow = policy.call(() => new Promise<string>((resolve) => (end = resolve)));
      await thrown(policy.call(flaky(9)));
      assert.equal(asked(), 1);
      end("slow");
      // It has counted: one failure after it does not open the breaker.
      assert.equal(await slow, "slow");
      await thrown(policy.call(flaky(9)));
      assert.deepEqual([asked(), guards.breakerState(policy)], [2, "closed"]);
      await policy.call(fine);
      await policy.call(fine);
      assert.deepEqual([asked(), guards.breakerState(policy)], [4, "closed"]);
      guards.report({ queueDepth: 1 });
      await policy.call(fine);
      assert.equal(asked(), 5);
    });

    test("a call that began in a calm is no probe of the breaker that opened meanwhile", async () => {
      const policy = counting(2, "20ms");
      const { guards } = policy;
      const ends: ((value: unknown) => void)[] = [];
      const slow = () => policy.call(() => new Promise((resolve) => ends.push(resolve)));
      const [good, bad] = [slow(), slow()];
      for (let i = 0; i < 2; i++) await thrown(policy.call(flaky(9)));
      assert.notEqual(guards.breakerState(policy), "closed");
      await sleep(25);
      assert.equal(guards.breakerState(policy), "half_open");
      ends[0]?.("late");
      assert.equal(await good, "late");
      const error = new Status(500);
      ends[1]?.(Promise.reject(error));
      // Its own error, and no refusal.
      assert.equal(await thrown(bad), error);
      assert.equal(traceOf(error)?.receipts.length, 1);
      assert.equal(guards.breakerState(policy), "half_open");
      assert.equal(await policy.call(fine), "fine");
      assert.equal(guards.breakerState(policy), "closed");
    });

    test("a call that began in a calm is charged for its retries, and cools its account", async () => {
      const limited = () => Promise.reject(new Status(429, { "retry-after": "30" }));
      const policy = new Policy({ ...QUICK, cooldown: {}, retryBudget: { capacity: 14 }, retryAfter: { max: "1s" } });
      assert.equal(await policy.call(flaky(1)), 2);
      assert.equal(await policy.call(fine), "fine");
      await thrown(policy.call(limited));
      assert.equal((await thrown(policy.call(fine))).stopReason, "cooling_down");
      const poor = new Policy({ ...QUICK, retryBudget: { capacity: 14, retryCost: 14 } });
      const first = await thrown(poor.call(flaky(9)));
      assert.equal(traceOf(first)?.receipts.length, 2);
    });

    test("a set that something else sees too is asked every time", async () => {
      const policy = counting(1);
      const guards = new Guards();
      const bound = policy.bind({ guards });
      const asked = asking(guards);
      assert.equal(await bound.call(fine), "fine");
      assert.equal(asked(), 1);
      if (name === "native") guards.share();
      const raw = new Call(policy, 1, { guards });
      assert.equal(await bound.call(fine), "fine");
      raw.begin(0);
      raw.onOutcome(1, 1, { failure: { kind: "server_error" } });
      assert((await thrown(bound.call(fine))) instanceof CircuitOpen);
      assert.equal(asked(), 1);
      if (name !== "native") return;
      const there = new Guards();
      const here = policy.bind({ guards: Guards.from(there.share()) });
      assert.equal(await here.call(fine), "fine");
      await thrown(policy.bind({ guards: there }).call(flaky(9)));
      assert((await thrown(here.call(fine))) instanceof CircuitOpen);
    });

    test("shedding and a deadline before an attempt are errors of ours", async () => {
      const guards = new Guards();
      guards.report({ queueDepth: 5 });
      const shed = new Policy({ priority: 1, shed: { queueDepth: 1 } }).bind({ guards });
      assert.equal((await thrown(shed.call(async () => 1))).name, "Shed");
      const run = new Run({ deadline: 0 });
      const late = await thrown(new Policy().bind({ run }).call(async () => 1));
      assert(late instanceof DeadlineExceeded || late instanceof RetryError);
    });

    test("layers add and do not multiply", async () => {
      let calls = 0;
      const inner = (): Promise<never> =>
        retry(() => {
          calls += 1;
          throw new Status(503);
        }, QUICK);
      const outer = await new Policy(QUICK).execute(inner);
      assert.deepEqual([calls, outer.attempts, outer.stopReason], [3, 1, "attempts_exhausted"]);
      const wrapping = () => inner().catch((cause) => Promise.reject(new Error("outer", { cause })));
      assert.equal(
        (await new Policy({ ...QUICK, retryOn: ["unknown", "server_error"] }).execute(wrapping)).attempts,
        1,
      );
    });

    test("the attempt is visible inside: it bounds inner calls, and a policy may refuse one", async () => {
      assert.equal(currentAttempt(), undefined);
      let seen: number | undefined;
      await retry(
        (outer) => {
          assert.equal(currentAttempt(), outer);
          return retry((attempt) => {
            seen = attempt.timeout;
          });
        },
        { attemptTimeout: 300_000 },
      );
      assert((seen ?? 0) > 0 && (seen ?? 0) <= 300_000);
      const refusing = new Policy({ nested: "refuse" });
      assert((await thrown(retry(() => refusing.call(() => 1)))) instanceof ConfigError);
      assert.equal(await refusing.call(() => 1), 1);
      const wrapped = new Policy().wrap(function (this: { k: number }, n: number) {
        return [this.k + n, currentAttempt()?.number];
      });
      assert.deepEqual(await wrapped.call({ k: 1 }, 2), [3, 1]);
      assert.equal(currentAttempt(), undefined);
    });

    test("with a context it is visible after an await as well", async () => {
      const { AsyncLocalStorage } = await import("node:async_hooks");
      setContext(new AsyncLocalStorage<Attempt>());
      try {
        await retry(async (attempt) => {
          await sleep(1);
          assert.equal(currentAttempt(), attempt);
        });
        assert.equal(currentAttempt(), undefined);
      } finally {
        setContext(undefined);
      }
    });

    test("fake timers work, whichever are faked", async () => {
      mock.timers.enable({ apis: ["setTimeout"] });
      try {
        const timedOut = thrown(retry(never, { attemptTimeout: 60_000, maxAttempts: 1 }));
        mock.timers.tick(60_001);
        assert((await timedOut) instanceof AttemptTimeout);
        const waited = retry(flaky(1), { backoff: { base: 60_000, max: 60_000 } });
        await new Promise((resolve) => setImmediate(resolve));
        mock.timers.tick(60_001);
        assert.equal(await waited, 2);
      } finally {
        mock.timers.reset();
      }
      assert((await thrown(retry(never, { attemptTimeout: 5, maxAttempts: 1 }))) instanceof AttemptTimeout);
    });

    test("a delay beyond what a timer holds is armed again", async () => {
      const days = 30 * 86_400_000;
      mock.timers.enable({ apis: ["setTimeout"] });
      try {
        const waited = retry(flaky(1), {
          totalTimeout: "80d",
          backoff: { base: days, max: days },
          jitter: { kind: "none" },
        });
        await new Promise((resolve) => setImmediate(resolve));
        mock.timers.tick(2 ** 31);
        assert.equal(await Promise.race([waited, new Promise((resolve) => setImmediate(resolve, "waits"))]), "waits");
        mock.timers.tick(days);
        assert.equal(await waited, 2);
      } finally {
        mock.timers.reset();
      }
    });

    test("a burst of calls times out, is cancelled and is told the time like single ones", async () => {
      const policy = new Policy({ ...QUICK, attemptTimeout: 20, maxAttempts: 1 });
      const all = await Promise.all(Array.from({ length: 200 }, () => thrown(policy.call(never))));
      assert(all.every((error) => error instanceof AttemptTimeout));
      const controller = new AbortController();
      const patient = policy.with({ attemptTimeout: "5m" });
      const cut = Array.from({ length: 200 }, () => thrown(patient.bind({ signal: controller.signal }).call(never)));
      await sleep(5);
      controller.abort("stop");
      assert((await Promise.all(cut)).every((reason) => reason === "stop"));
      const left = await Promise.all(Array.from({ length: 50 }, () => patient.call((attempt) => attempt.timeLeft)));
      assert(left.every((ms) => ms > 0 && ms <= 300_000));
    });

    test("offline: a wait goes on until it is online again, or the deadline; no attempt is burnt", async () => {
      const page = new EventTarget();
      const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
      const place = { onLine: false };
      Object.defineProperty(globalThis, "navigator", { value: place, configurable: true });
      Object.assign(globalThis, {
        addEventListener: page.addEventListener.bind(page),
        removeEventListener: page.removeEventListener.bind(page),
      });
      try {
        const call = retry(flaky(1), { backoff: { base: 5 }, jitter: { kind: "none" } });
        await sleep(30);
        assert.equal(await Promise.race([call, sleep(1).then(() => "waits")]), "waits");
        place.onLine = true;
        page.dispatchEvent(new Event("online"));
        assert.equal(await call, 2);
        place.onLine = false;
        const result = await new Policy({ backoff: { base: 5 }, totalTimeout: 60 }).execute(flaky(9));
        assert.deepEqual([result.attempts, result.stopReason], [1, "deadline_exceeded"]);
      } finally {
        if (before) Object.defineProperty(globalThis, "navigator", before);
        else delete (globalThis as any).navigator;
        delete (globalThis as any).addEventListener;
        delete (globalThis as any).removeEventListener;
      }
    });

    test("a virtual clock: no real waiting, attempts capped, timeouts when it is let pass", async () => {
      const sleeps = await virtual(async (clock) => {
        const result = await new Policy({ backoff: { base: 60_000, max: 60_000 }, jitter: { kind: "none" } }).execute(
          flaky(9),
        );
        assert.equal(result.latency, 120_000);
        const cut = thrown(retry(never, { attemptTimeout: 1000, maxAttempts: 1 }));
        clock.advance(1000);
        assert((await cut) instanceof AttemptTimeout);
        return clock.sleeps;
      });
      assert.deepEqual(sleeps, [60_000, 60_000]);
      const capped = await virtual(() => new Policy({ maxAttempts: 9 }).execute(flaky(99)), { attempts: 2 });
      assert.equal(capped.attempts, 2);
      await assert.rejects(
        virtual(() => 1, { attempts: 0 }),
        ConfigError,
      );
    });

    test("evidence without an error", () => {
      assert.equal(classify(undefined, { osCode: "ECONNREFUSED" }).kind, "transport");
      assert.equal(classify({ status: 429, headers: { "retry-after": "20" } }).retryAfter, 20_000);
      assert.equal(
        classify(new Error("busy"), {
          policy: new Policy({ rules: [{ when: { message: "busy" }, kind: "overloaded" }] }),
        }).kind,
        "overloaded",
      );
    });

    test("the raw machine", () => {
      const call = new Call(new Policy({ jitter: { kind: "none" } }), 7);
      assert.equal(call.begin(0).kind, "attempt");
      const action = call.onOutcome(1e6, 1, { failure: { kind: "timeout" } });
      assert.deepEqual([action.kind, action.after, action.afterNs, action.reason], ["retry", 500, 5e8, "timeout"]);
      assert.equal(call.state, "waiting");
      assert.throws(() => call.onOutcome(2e6, 9, { success: {} }), MisuseError);
      assert.throws(() => call.onOutcome(2e6, 1, { nothing: 1 } as never), ConfigError);
      assert.throws(() => Call.restore("{}", 0, 0), SnapshotError);
      assert.equal(call.records[0]?.kind, "timeout");
    });

    test("is retriable", () => {
      const policy = new Policy();
      assert.equal(policy.isRetriable(new Status(503)), true);
      assert.equal(policy.isRetriable(new Status(400)), false);
      assert.equal(policy.bind({ classify: () => "timeout" }).isRetriable(new Error("x")), true);
    });

    test("a server that refuses, one that cuts, and one that answers 429, through fetch", async () => {
      const server = createServer((request, response) => {
        if (request.url === "/cut") return void response.destroy();
        response.writeHead(429, { "retry-after": "7" }).end("slow down");
      }).listen(0);
      await once(server, "listening");
      let { port } = server.address() as AddressInfo;
      const kindOf = async (path: string): Promise<Failure> => {
        const result = await new Policy({ maxAttempts: 1 }).execute(async () => {
          const response = await fetch(`http://127.0.0.1:${port}${path}`);
          if (!response.ok) throw response;
        });
        return result.failure as Failure;
      };
      const busy = await kindOf("/");
      assert.deepEqual([busy.kind, busy.retryAfter], ["rate_limit", 7000]);
      assert.equal((await kindOf("/cut")).kind, "transport");
      server.close();
      server.closeAllConnections();
      const gone = createServer().listen(0);
      await once(gone, "listening");
      ({ port } = gone.address() as AddressInfo);
      gone.close();
      await once(gone, "close");
      const refused = await kindOf("/");
      assert.deepEqual([refused.kind, refused.mayHaveExecuted], ["transport", false]);
    });
  });
}
