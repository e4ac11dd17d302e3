/** Calls inside of calls, over one engine: they add, never multiply; the inner one is bounded where the outer is seen. */
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, mock, test } from "node:test";
import type { Engine } from "../driver/engine.js";
import {
  type Attempt,
  AttemptTimeout,
  ConfigError,
  currentAttempt,
  Policy,
  type PolicyFields,
  Run,
  retry,
  retryStream,
  setContext,
  setEngine,
  traceOf,
  wrapFetch,
} from "../driver/index.js";
import { virtual } from "../driver/testing.js";
import { engines } from "./engines.js";
import { never, QUICK, Status, sleep, thrown, turn } from "./setup.js";

const busy = (): Error => Object.assign(new Error("busy"), { status: 503 });

/** Three layers around a function that always fails; how often it was called. */
async function layered(fields: PolicyFields): Promise<{ calls: number; error: unknown }> {
  let calls = 0;
  const fail = (): never => {
    calls++;
    throw busy();
  };
  // Each client wraps what it could not do in an error of its own.
  const wrapping = (what: string, fn: () => Promise<unknown>) => async () => {
    try {
      return await fn();
    } catch (cause) {
      throw Object.assign(new Error(what, { cause }), { status: 500 });
    }
  };
  const inner = wrapping("inner", () => retry(fail, QUICK));
  const middle = wrapping("middle", () => retry(inner, { ...QUICK, ...fields }));
  const error = await retry(middle, { ...QUICK, ...fields }).catch((thrown: unknown) => thrown);
  return { calls, error };
}

/** Runs with attempts that are seen across every `await`. */
async function visibly<T>(body: () => Promise<T>): Promise<T> {
  setContext(new AsyncLocalStorage<Attempt>());
  try {
    return await body();
  } finally {
    setContext(undefined);
  }
}

export function suite(name: string): void {
  describe(`layers over ${name}`, () => {
    setEngine(() => engines[name] as Engine);

    test("three layers of three attempts make three requests, not twenty-seven", async () => {
      const { calls, error } = await layered({});
      assert.equal(calls, 3);
      assert.equal(traceOf(error)?.ended?.reason, "attempts_exhausted");
      assert.equal(traceOf(error)?.receipts.length, 1);
    });

    test("a layer that is told so is independent", async () => {
      assert.equal((await layered({ nested: "independent" })).calls, 27);
    });

    test("an outer call falls back where the inner one gave up", async () => {
      const tried: string[] = [];
      const value = await retry(
        (attempt) => {
          tried.push(attempt.target);
          return attempt.target === "backup" ? "fine" : retry(() => Promise.reject(busy()), QUICK);
        },
        { ...QUICK, targets: [{ id: "primary" }, { id: "backup" }] },
      );
      assert.deepEqual([value, tried], ["fine", ["primary", "backup"]]);
    });

    test("a call with an attempt's signal is part of it: time, run, records", async () => {
      await virtual(async (clock) => {
        const run = new Run({ attempts: 10 });
        const lines: any[] = [];
        const sink = (line: string): unknown => lines.push(JSON.parse(line));
        let left: number[] = [];
        let outer = "";
        const policy = new Policy({ ...QUICK, attemptTimeout: 5000 }).bind({ run });
        await policy.call(async (attempt) => {
          outer = attempt.traceId;
          clock.advance(2000);
          await turn();
          const inner = (one: Attempt): void => {
            left = [...left, one.timeout];
            assert.equal(one.run, run);
            if (one.number === 1) throw busy();
          };
          await retry(inner, QUICK, { signal: attempt.signal, sink });
        });
        assert.deepEqual(left, [3000, 3000]);
        assert.equal(lines[0].outer_trace_id, outer);
        assert.equal(JSON.parse(run._native.report()).attempts.used, 3);
      });
    });

    test("without the signal, a call after an await knows of no attempt around it", async () => {
      const seen: unknown[] = [];
      await retry(async () => {
        seen.push(currentAttempt() !== undefined);
        await turn();
        seen.push(currentAttempt() !== undefined);
      }, QUICK);
      assert.deepEqual(seen, [true, false]);
    });

    test("with a context it does, and ends with the attempt", async () => {
      await visibly(async () => {
        let inner = 0;
        let given: unknown;
        const fields = { ...QUICK, attemptTimeout: 30, maxAttempts: 1 };
        const waits = {
          backoff: { kind: "constant", base: 1 },
          jitter: { kind: "none" },
          maxAttempts: 1000,
        } as const;
        // On a busy machine the outer one may be over before the inner one has begun.
        for (let i = 0; i < 50 && inner === 0; i++) {
          const outer = retry(async () => {
            await turn();
            given = await retry(() => {
              inner++;
              throw busy();
            }, waits).catch((error: unknown) => error);
            return never();
          }, fields);
          await assert.rejects(outer, AttemptTimeout);
          await turn();
        }
        const then = inner;
        await new Promise((resolve) => setTimeout(resolve, 20));
        assert.equal(inner, then);
        assert(given instanceof Error);
      });
    });

    test("what an abandoned attempt still begins is cancelled, with its reason", async () => {
      await visibly(async () => {
        let begins = (): void => {};
        let inner: Promise<unknown> | undefined;
        const later = new Promise<void>((resolve) => {
          begins = resolve;
        });
        const controller = new AbortController();
        const outer = retry(
          async () => {
            await later;
            inner = retry(() => 1, QUICK).catch((error: unknown) => error);
            return never();
          },
          QUICK,
          { signal: controller.signal },
        );
        await turn();
        const reason = new Error("enough");
        controller.abort(reason);
        await assert.rejects(outer, reason);
        begins();
        await turn();
        assert.equal(await inner, reason);
      });
    });

    test("with a context, a stream's own code sees its attempt whenever it runs", async () => {
      await visibly(async () => {
        const seen: unknown[] = [];
        const stream = retryStream(async function* (attempt) {
          seen.push(currentAttempt() === attempt);
          yield "a";
          await turn();
          seen.push(currentAttempt() === attempt);
          yield "b";
        }, QUICK);
        for await (const _ of stream) seen.push(currentAttempt());
        assert.deepEqual(seen, [true, undefined, true, undefined]);
      });
    });

    test("a policy that refuses to be inside of another says so", async () => {
      const refusing = new Policy({ ...QUICK, nested: "refuse" });
      await assert.rejects(
        retry((attempt) => refusing.bind({ signal: attempt.signal }).call(() => 1), QUICK),
        (error: unknown) => error instanceof ConfigError && /nested: refuse/.test(error.message),
      );
      assert.equal(await refusing.call(() => 1), 1);
    });

    test("an independent call is not bounded, though it is seen", async () => {
      await virtual(async () => {
        const inner = new Policy({ ...QUICK, nested: "independent" });
        const timeout = await retry((attempt) => inner.bind({ signal: attempt.signal }).call((one) => one.timeout), {
          attemptTimeout: 100,
        });
        assert.equal(timeout, 600_000);
      });
    });

    test("an attempt that is over bounds nothing", async () => {
      let signal: AbortSignal | undefined;
      await retry(
        (attempt) => {
          signal = attempt.signal;
        },
        { attemptTimeout: 100 },
      );
      assert.equal(await retry((attempt) => attempt.timeout, {}, { signal: signal as AbortSignal }), 600_000);
    });

    test("a wrapped fetch is part of the attempt whose signal it is given", async () => {
      await virtual(async () => {
        const lines: any[] = [];
        const seen: unknown[] = [];
        const fetch = async (_: unknown, init?: RequestInit): Promise<Response> => {
          seen.push(init?.signal instanceof AbortSignal);
          return new Response("no", { status: 503 });
        };
        const sink = (line: string): unknown => lines.push(JSON.parse(line));
        const wrapped = wrapFetch(fetch as typeof globalThis.fetch, QUICK, { sink });
        let outer = "";
        // As an SDK does it: an error of its own, with no cause, and the headers of the response.
        const error = await retry(async (attempt) => {
          outer = attempt.traceId;
          const response = await wrapped("http://server/", { signal: attempt.signal });
          const { status, headers } = response;
          throw Object.assign(new Error(await response.text()), { status, headers });
        }, QUICK).catch((thrown: unknown) => thrown);
        assert.equal(seen.length, 3);
        assert.equal(lines[0].outer_trace_id, outer);
        assert.equal(traceOf(error)?.receipts.length, 1);
      });
    });

    test("bytes that a wrapped fetch brings end the silence of a stream around it", async () => {
      await visibly(() =>
        virtual(async (clock) => {
          let bytes: ReadableStreamDefaultController<Uint8Array> | undefined;
          const body = new ReadableStream<Uint8Array>({
            start(controller) {
              bytes = controller;
            },
          });
          const fetch = wrapFetch(async () => new Response(body), { ...QUICK, maxAttempts: 1 });
          const send = (text: string): void => bytes?.enqueue(new TextEncoder().encode(text));
          const stream = retryStream(
            async function* () {
              const reader = ((await fetch()).body as ReadableStream<Uint8Array>).getReader();
              for (let part = await reader.read(); !part.done; part = await reader.read()) {
                const text = new TextDecoder().decode(part.value);
                if (text !== "ping") yield text;
              }
            },
            { ...QUICK, maxAttempts: 1, stream: { silenceTimeout: 1000 } },
          );
          send("item");
          assert.equal((await stream.next()).value, "item");
          const waiting = stream.next();
          for (let i = 0; i < 3; i++) {
            await turn();
            clock.advance(900);
            send("ping");
          }
          await turn();
          clock.advance(999);
          await turn();
          clock.advance(1);
          await assert.rejects(waiting, /was silent for 1 s/);
        }),
      );
    });

    test("a client above that retries by itself is told of, once", async () => {
      const warned = mock.method(console, "warn", () => {});
      try {
        const fetch = wrapFetch(async (_: string, __?: RequestInit) => new Response("fine"), QUICK);
        const headers = { "x-stainless-retry-count": "1", "user-agent": `client of ${name}` };
        for (let i = 0; i < 2; i++) await fetch("http://server/", { headers });
        await fetch("http://server/", { headers: { "x-stainless-retry-count": "0" } });
        assert.equal(warned.mock.callCount(), 1);
        assert.match(
          String(warned.mock.calls[0]?.arguments[0]),
          /the client client of .* turn that off with maxRetries: 0/,
        );
      } finally {
        warned.mock.restore();
      }
    });

    test("an inner call is cancelled with its outer one, whose reason it throws", async () => {
      const controller = new AbortController();
      let inner: Promise<unknown> | undefined;
      const outer = retry(
        (attempt) => {
          inner = retry(never, QUICK, { signal: attempt.signal });
          return inner;
        },
        QUICK,
        { signal: controller.signal },
      );
      const reason = new Error("enough");
      controller.abort(reason);
      await assert.rejects(outer, reason);
      await assert.rejects(inner as Promise<unknown>, reason);
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
      await visibly(async () => {
        await retry(async (attempt) => {
          await sleep(1);
          assert.equal(currentAttempt(), attempt);
        });
        assert.equal(currentAttempt(), undefined);
      });
    });
  });
}
