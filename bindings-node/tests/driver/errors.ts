/** What is thrown and answered at the end: the caller's own object, a result, an error of ours. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import {
  AttemptTimeout,
  BadOutput,
  BudgetExhausted,
  CallCancelled,
  CircuitOpen,
  ConfigError,
  CoolingDown,
  classify,
  DeadlineExceeded,
  Failure,
  MisuseError,
  Policy,
  Result,
  RetryError,
  RetryExhausted,
  retry,
  Shed,
  traceOf,
} from "../../driver/index.js";
import { flaky, QUICK, Status, thrown } from "../setup.js";

export function errors(): void {
  describe("errors", () => {
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

    test("an AbortError that is nobody's signal's is a cancellation of its own, and not retried", async () => {
      const error = new DOMException("gone", "AbortError");
      const result = await new Policy({ ...QUICK, retryOn: ["unknown"] }).execute(flaky(9, error));
      assert.deepEqual([result.error, result.failure?.kind, result.attempts], [error, "cancelled", 1]);
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
      const result = await new Policy({ ...QUICK, maxAttempts: 1 }).execute(flaky(9, new Status(503)));
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
      const { port } = server.address() as AddressInfo;
      const kindOf = async (path: string, port: number): Promise<Failure> => {
        const result = await new Policy({ maxAttempts: 1 }).execute(async () => {
          const response = await fetch(`http://127.0.0.1:${port}${path}`);
          if (!response.ok) throw response;
        });
        return result.failure as Failure;
      };
      const busy = await kindOf("/", port);
      assert.deepEqual([busy.kind, busy.retryAfter], ["rate_limit", 7000]);
      assert.equal((await kindOf("/cut", port)).kind, "transport");
      // The port of a connection is nobody else's, and nobody listens there.
      const held = connect(port, "127.0.0.1");
      await once(held, "connect");
      const refused = await kindOf("/", held.localPort as number);
      assert.deepEqual([refused.kind, refused.mayHaveExecuted], ["transport", false]);
      held.destroy();
      server.close();
      server.closeAllConnections();
    });
  });
}
