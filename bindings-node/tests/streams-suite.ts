/** Streams under a policy, over one engine: sources that break, wait and end as a test says. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Engine } from "../driver/engine.js";
import {
  AttemptTimeout,
  ConfigError,
  Discard,
  MisuseError,
  Policy,
  type PolicyFields,
  retry,
  retryStream,
  StreamError,
  setEngine,
  traceOf,
} from "../driver/index.js";
import { virtual } from "../driver/testing.js";
import { engines } from "./engines.js";

const QUICK = { backoff: { kind: "constant", base: 0 }, jitter: { kind: "none" } } as const;

const cut = (): Error => Object.assign(new TypeError("terminated"), { code: "UND_ERR_SOCKET" });
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Collects garbage now. */
setFlagsFromString("--expose-gc");
const gc: () => void = runInNewContext("gc");

function readable(items: readonly string[]): ReadableStream<string> {
  return new ReadableStream({
    start(controller) {
      for (const item of items) controller.enqueue(item);
      controller.close();
    },
  });
}

/** One attempt's items; an error among them is thrown, `HANG` never comes. */
type Script = readonly unknown[];
const HANG = Symbol("hang");

/** A source that plays a script for each attempt, and takes down what was done to it. */
class Played {
  pulls = 0;
  closed = 0;
  open = 0;
  attempts = 0;

  constructor(private readonly scripts: readonly Script[]) {}

  readonly fn = (): AsyncIterable<unknown> => {
    const script = this.scripts[Math.min(this.attempts, this.scripts.length - 1)] as Script;
    this.attempts++;
    this.open++;
    let at = 0;
    return {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          this.pulls++;
          if (at === script.length) return { done: true, value: undefined };
          const value = script[at++];
          if (value === HANG) return new Promise(() => {});
          if (value instanceof Error) throw value;
          return { done: false, value };
        },
        return: async () => {
          this.closed++;
          return { done: true, value: undefined };
        },
      }),
    };
  };
}

/** Everything that comes, and what it ends with. */
async function all(stream: AsyncIterable<unknown>): Promise<{ items: unknown[]; error?: any }> {
  const items: unknown[] = [];
  try {
    for await (const item of stream) items.push(item);
    return { items };
  } catch (error) {
    return { items, error };
  }
}

const play = (scripts: readonly Script[], fields: PolicyFields = {}): Promise<{ items: unknown[]; error?: any }> =>
  all(retryStream(new Played(scripts).fn, { ...QUICK, ...fields }));

export function suite(name: string): void {
  describe(`streams over ${name}`, () => {
    setEngine(() => engines[name] as Engine);

    test("items come as they are, and the call tells of them", async () => {
      const stream = retryStream(new Played([["a", "b", "c"]]).fn, QUICK);
      assert.deepEqual(await all(stream), { items: ["a", "b", "c"] });
      const [receipt] = stream.trace?.receipts ?? [];
      assert.deepEqual([receipt?.outcome, receipt?.delivered], ["success", 3]);
      assert.deepEqual(await stream.next(), { done: true, value: undefined });
    });

    test("nothing begins before somebody asks", async () => {
      const source = new Played([["a"]]);
      const stream = retryStream(source.fn, QUICK);
      await turn();
      assert.equal(source.attempts, 0);
      await stream.next();
      assert.equal(source.attempts, 1);
    });

    for (const [what, fn] of Object.entries({
      "an async generator": async function* () {
        yield* ["a", "b"];
      },
      "a generator": function* () {
        yield* ["a", "b"];
      },
      "a ReadableStream": () => readable(["a", "b"]),
      "a promise of one": async () => readable(["a", "b"]),
      "a response": () => ({ body: readable(["a", "b"]) }),
    })) {
      test(`takes ${what}`, async () => {
        assert.deepEqual(await all(retryStream(fn as () => AsyncIterable<unknown>, QUICK)), { items: ["a", "b"] });
      });
    }

    for (const answer of [undefined, null, "text", 7, {}, new Date(0)]) {
      test(`refuses ${answer instanceof Date ? "a date" : JSON.stringify(answer)}`, async () => {
        const { error } = await all(retryStream((() => answer) as never, QUICK));
        assert(error instanceof ConfigError);
        assert.match(error.message, /a stream: an async iterable, a ReadableStream, a Response/);
      });
    }

    test("is retried until its first content is there", async () => {
      const source = new Played([[cut()], [cut()], ["a", "b"]]);
      assert.deepEqual(await all(retryStream(source.fn, QUICK)), { items: ["a", "b"] });
      assert.equal(source.attempts, 3);
    });

    test("a function that fails is retried as well", async () => {
      let calls = 0;
      const { items } = await all(
        retryStream(() => {
          if (++calls < 3) throw Object.assign(new Error("busy"), { status: 503 });
          return readable(["a"]);
        }, QUICK),
      );
      assert.deepEqual([items, calls], [["a"], 3]);
    });

    test("stops once something was delivered: the source's own error, with what was delivered", async () => {
      const broken = cut();
      const { items, error } = await play([["a", "b", broken], ["c"]]);
      assert.deepEqual(items, ["a", "b"]);
      assert.equal(error, broken);
      assert.equal(traceOf(error)?.ended?.reason, "already_delivered");
      assert.equal(traceOf(error)?.receipts[0]?.delivered, 2);
      assert.deepEqual(traceOf(error)?.delivered, ["a", "b"]);
      assert.equal(traceOf(error)?.receipts[0]?.kind, "stream_interrupted");
    });

    test("buffered: nothing comes before all is there, and it is retried until then", async () => {
      const source = new Played([
        ["a", "b", cut()],
        ["c", "d"],
      ]);
      const stream = retryStream(source.fn, { ...QUICK, stream: { mode: "buffered" } });
      const first = await stream.next();
      assert.deepEqual([first.value, source.attempts, source.pulls], ["c", 2, 6]);
      assert.deepEqual(await all(stream), { items: ["d"] });
      assert.deepEqual(
        stream.trace?.receipts.map((receipt) => receipt.delivered),
        [0, 2],
      );
    });

    test("restart: what came is void, says an item of its own, and the answer begins anew", async () => {
      const stream = retryStream(new Played([["a", "b", cut()], ["c", cut()], ["d"]]).fn, {
        ...QUICK,
        stream: { mode: "restart" },
      });
      const { items } = await all(stream);
      assert.deepEqual(items, ["a", "b", new Discard(2), "c", new Discard(1), "d"]);
      assert.deepEqual(
        stream.trace?.receipts.map((receipt) => receipt.delivered),
        [2, 1, 1],
      );
    });

    test("restart: the discard comes before the wait", async () => {
      await virtual(async (clock) => {
        const fields = { backoff: { kind: "constant", base: 1000 }, stream: { mode: "restart" } } as const;
        const stream = retryStream(new Played([["a", cut()], ["b"]]).fn, { ...fields, jitter: { kind: "none" } });
        const seen: unknown[] = [];
        for await (const item of stream) seen.push([item instanceof Discard, clock.sleeps.length]);
        assert.deepEqual(seen, [
          [false, 0],
          [true, 0],
          [false, 1],
        ]);
      });
    });

    test("resume: the function is told what was delivered, and goes on after it", async () => {
      const text = ["one", "two", "three", "four"];
      const handed: unknown[] = [];
      const stream = retryStream(
        (attempt) => {
          handed.push(attempt.delivered);
          const rest = text.slice(attempt.delivered.length);
          const script = attempt.number < 3 ? [rest[0], cut()] : rest;
          return new Played([script]).fn() as AsyncIterable<string>;
        },
        { ...QUICK, stream: { mode: "resume" } },
      );
      const { items } = await all(stream);
      assert.deepEqual(items, text);
      assert.deepEqual(handed, [[], ["one"], ["one", "two"]]);
      assert.deepEqual(
        stream.trace?.receipts.map((receipt) => receipt.delivered),
        [1, 2, 4],
      );
    });

    test("resume: an answer of which only the end was missing is whole", async () => {
      const said = { choices: [{ delta: { content: "all of it" } }] };
      const end = { choices: [{ delta: {}, finish_reason: "stop" }] };
      const { items, error } = await play([[said, cut()], [end]], { stream: { mode: "resume" } });
      assert.deepEqual([items, error], [[said, end], undefined]);
    });

    test("held back until there is content, and delivered with it", async () => {
      const [start, role] = [{ type: "message_start" }, { choices: [{ delta: { role: "assistant" } }] }];
      const said = { choices: [{ delta: { content: "hello" }, finish_reason: "stop" }] };
      assert.deepEqual(
        await play([
          [start, cut()],
          [role, cut()],
          [role, said],
        ]),
        { items: [role, said] },
      );
    });

    test("an answer without its end was cut", async () => {
      const said = { choices: [{ delta: { content: "hello" } }] };
      const { items, error } = await play([[said]]);
      assert.deepEqual(items, [said]);
      assert(error instanceof StreamError);
      assert.deepEqual([error.code, error.stopReason], ["eof_without_finish", "already_delivered"]);
      assert.equal(traceOf(error)?.receipts[0]?.kind, "stream_interrupted");
    });

    test("of two answers beside each other, the end of one is not the end of both", async () => {
      const end = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
      const said = { choices: [{ index: 1, delta: { content: "and" } }] };
      const { error } = await play([[said, end, said]]);
      assert.equal(error.code, "eof_without_finish");
    });

    test("an end without content is no answer", async () => {
      const end = { choices: [{ delta: {}, finish_reason: "stop" }] };
      const { error } = await play([[end]], { maxAttempts: 2 });
      assert.deepEqual([error.code, error.attempts, error.failure.kind], ["empty_answer", 2, "invalid_output"]);
    });

    test("no items are fine where nothing is known of them", async () => {
      assert.deepEqual(await play([[]]), { items: [] });
      assert.deepEqual(await play([["", null]]), { items: ["", null] });
    });

    test("a client's stream without any event was cut", async () => {
      let attempts = 0;
      const { error } = await all(
        retryStream(
          () => {
            attempts++;
            return Object.assign(new Played([[]]).fn(), { controller: new AbortController() });
          },
          { ...QUICK, maxAttempts: 2 },
        ),
      );
      assert.deepEqual([error.code, attempts], ["eof_without_finish", 2]);
    });

    test("an error event ends the attempt, as content or before it", async () => {
      const event = { type: "error", error: { type: "overloaded_error", message: "too many" } };
      assert.deepEqual(await play([[event], ["a"]]), { items: ["a"] });
      const { items, error } = await play([["a", event]]);
      assert.deepEqual(items, ["a"]);
      assert.equal(error.event, event);
      assert.match(error.message, /an error amid the stream: too many/);
      assert.equal(error.failure.kind, "overloaded");
    });

    test("an answer that starts again was cut", async () => {
      const start = { type: "message_start", message: {} };
      const said = { type: "content_block_delta", delta: { type: "text_delta", text: "a" } };
      const { items, error } = await play([[start, said, start, said]]);
      assert.deepEqual([items.length, error.code], [2, "second_start"]);
    });

    test("a finish that says filtered is an error, after what was delivered", async () => {
      const said = { choices: [{ delta: { content: "a" } }] };
      const { items, error } = await play([[said, { choices: [{ delta: {}, finish_reason: "content_filter" }] }]]);
      assert.deepEqual([items.length, error.failure.kind], [2, "content_filtered"]);
    });

    test("usage is read from the first items and the last", async () => {
      const stream = retryStream(
        new Played([
          [
            { type: "message_start", message: { usage: { input_tokens: 7, output_tokens: 1 } } },
            { type: "content_block_delta", delta: { type: "text_delta", text: "a" } },
            { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } },
            { type: "message_stop" },
          ],
        ]).fn,
        QUICK,
      );
      await all(stream);
      const [receipt] = stream.trace?.receipts ?? [];
      assert.deepEqual([receipt?.input_tokens, receipt?.output_tokens], [7, 9]);
    });

    test("who leaves after the finish has had the whole answer", async () => {
      const said = { choices: [{ delta: { content: "a" }, finish_reason: "stop" }] };
      const source = new Played([[said, HANG]]);
      const stream = retryStream(source.fn, QUICK);
      for await (const _ of stream) break;
      await turn();
      await turn();
      assert.deepEqual([stream.trace?.ended?.outcome, source.closed], ["success", 1]);
    });

    test("items are pulled one by one, and none ahead", async () => {
      const source = new Played([["a", "b", "c"]]);
      const stream = retryStream(source.fn, QUICK);
      for (const pulls of [1, 2, 3]) {
        await stream.next();
        await turn();
        assert.equal(source.pulls, pulls);
      }
    });

    for (const leave of ["break", "return", "cancel"] as const) {
      test(`a consumer that leaves by ${leave} closes the source and ends the call`, async () => {
        const source = new Played([["a", "b", HANG]]);
        let signal: AbortSignal | undefined;
        const lines: any[] = [];
        const sink = (line: string): unknown => lines.push(JSON.parse(line));
        const stream = retryStream(
          (attempt) => {
            signal = attempt.signal;
            return source.fn();
          },
          QUICK,
          { sink },
        );
        if (leave === "break") for await (const _ of stream) break;
        if (leave === "return") {
          await stream.next();
          await stream.return();
        }
        if (leave === "cancel") {
          const reader = stream.toReadableStream().getReader();
          await reader.read();
          await reader.cancel();
        }
        await turn();
        assert.deepEqual([source.closed, signal?.aborted], [1, true]);
        assert.equal(lines.at(-1)?.reason, "cancelled");
        assert.deepEqual(await stream.next(), { done: true, value: undefined });
      });
    }

    test("a consumer that leaves while it waits is answered", async () => {
      const stream = retryStream(new Played([["a", HANG]]).fn, QUICK);
      await stream.next();
      const waiting = stream.next();
      await stream.return();
      assert.deepEqual(await waiting, { done: true, value: undefined });
    });

    test("a stream that was never asked ends without a call", async () => {
      const source = new Played([["a"]]);
      const stream = retryStream(source.fn, QUICK);
      await stream.return();
      assert.deepEqual([await stream.next(), source.attempts], [{ done: true, value: undefined }, 0]);
    });

    test("the caller's signal ends it with its own reason, at once", async () => {
      const source = new Played([["a", HANG]]);
      const controller = new AbortController();
      const stream = retryStream(source.fn, QUICK, { signal: controller.signal });
      await stream.next();
      const waiting = stream.next();
      const reason = new Error("enough");
      controller.abort(reason);
      await assert.rejects(waiting, reason);
      await turn();
      assert.equal(source.closed, 1);
    });

    test("is consumed once", async () => {
      const stream = retryStream(new Played([["a"]]).fn, QUICK);
      await all(stream);
      assert.throws(() => stream[Symbol.asyncIterator](), MisuseError);
      assert.throws(() => stream.toReadableStream(), /consumed once: ask for a new one, or keep its items/);
    });

    test("who asks twice at once gets two items, in order", async () => {
      const stream = retryStream(new Played([["a", "b"]]).fn, QUICK);
      const answers = await Promise.all([stream.next(), stream.next(), stream.next()]);
      assert.deepEqual(
        answers.map(({ value }) => value),
        ["a", "b", undefined],
      );
    });

    test("open() begins, and waits for the first content", async () => {
      const source = new Played([[cut()], ["a", "b"]]);
      const stream = await retryStream(source.fn, QUICK).open();
      assert.deepEqual([source.attempts, source.pulls], [2, 2]);
      assert.deepEqual(await all(stream), { items: ["a", "b"] });
      const fails = Object.assign(new Error("no"), { status: 400 });
      await assert.rejects(retryStream(() => Promise.reject(fails), QUICK).open(), fails);
    });

    test("the first item has its time, and so has the attempt until then", async () => {
      await virtual(async (clock) => {
        const fields = { ...QUICK, maxAttempts: 1, stream: { firstItemTimeout: 3000 } } as const;
        const waiting = retryStream(new Played([[HANG]]).fn, fields).next();
        await turn();
        clock.advance(2999);
        await turn();
        clock.advance(1);
        await assert.rejects(waiting, (error: Error) => {
          assert(error instanceof AttemptTimeout);
          assert.match(error.message, /attempt 1 had no first item within 3 s/);
          assert.equal(traceOf(error)?.receipts[0]?.latency_ms, 3000);
          return true;
        });
      });
    });

    test("a stream that has begun outlives the attempt's timeout and the total", async () => {
      await virtual(async (clock) => {
        const stream = retryStream(new Played([["a", "b"]]).fn, { ...QUICK, attemptTimeout: 1000, totalTimeout: 2000 });
        await stream.next();
        clock.advance(60_000);
        assert.deepEqual(await all(stream), { items: ["b"] });
        assert.equal(stream.trace?.ended?.elapsed_ms, 60_000);
      });
    });

    test("a slow attempt is joined by another; the first with an item is the one", async () => {
      await virtual(async (clock) => {
        const source = new Played([[HANG], ["a", "b"]]);
        const signals: AbortSignal[] = [];
        const stream = retryStream(
          (attempt) => {
            signals.push(attempt.signal);
            return source.fn();
          },
          { ...QUICK, hedge: { after: 300 } },
        );
        const waiting = stream.next();
        await turn();
        clock.advance(299);
        await turn();
        assert.equal(source.attempts, 1);
        clock.advance(1);
        assert.deepEqual(await waiting, { done: false, value: "a" });
        assert.deepEqual([source.closed, signals.map((signal) => signal.aborted)], [1, [true, false]]);
        assert.deepEqual(await all(stream), { items: ["b"] });
        assert.deepEqual([source.attempts, stream.trace?.ended?.outcome], [2, "success"]);
      });
    });

    test("an attempt that has an item is joined by none", async () => {
      await virtual(async (clock) => {
        const source = new Played([["a", HANG], ["c"]]);
        const stream = retryStream(source.fn, { ...QUICK, hedge: { after: 300 } });
        await stream.next();
        const waiting = stream.next();
        clock.advance(1000);
        await turn();
        assert.equal(source.attempts, 1);
        await stream.return();
        await waiting;
        await turn();
        assert.equal(source.closed, 1);
      });
    });

    test("idle is counted while the source is waited for, and not while the consumer is slow", async () => {
      await virtual(async (clock) => {
        const stream = retryStream(new Played([["a", "b", HANG]]).fn, { ...QUICK, stream: { idleTimeout: 1000 } });
        await stream.next();
        clock.advance(60_000);
        await stream.next();
        clock.advance(60_000);
        const waiting = stream.next();
        await turn();
        clock.advance(999);
        await turn();
        clock.advance(1);
        await assert.rejects(waiting, /attempt 1 was idle for 1 s/);
        assert.equal(stream.trace?.ended?.reason, "already_delivered");
      });
    });

    test("pings are no data: the wait for it goes on", async () => {
      await virtual(async (clock) => {
        const ping = { type: "ping" };
        const source = new Played([["a", ping, "b", ping, ping, HANG]]);
        const stream = retryStream(
          async function* () {
            for await (const item of source.fn()) {
              clock.advance(item === ping ? 400 : 0);
              yield item;
            }
          },
          { ...QUICK, stream: { idleTimeout: 1000 } },
        );
        for (let i = 0; i < 5; i++) await stream.next();
        const waiting = stream.next();
        await turn();
        clock.advance(199);
        await turn();
        clock.advance(1);
        await assert.rejects(waiting, /was idle for 1 s/);
      });
    });

    test("silence is counted from the beginning", async () => {
      await virtual(async (clock) => {
        const fields = { ...QUICK, maxAttempts: 1, stream: { silenceTimeout: 500 } } as const;
        const waiting = retryStream(new Played([[HANG]]).fn, fields).next();
        await turn();
        clock.advance(500);
        await assert.rejects(waiting, /attempt 1 was silent for 0.5 s/);
      });
    });

    test("after a cut the total binds again, without the time of delivery", async () => {
      await virtual(async (clock) => {
        const fields = { ...QUICK, totalTimeout: 2000, stream: { mode: "restart" } } as const;
        let left: number[] = [];
        const source = new Played([["a", cut()], ["b"]]);
        const stream = retryStream((attempt) => {
          left = [...left, attempt.timeout];
          return source.fn();
        }, fields);
        await stream.next();
        clock.advance(60_000);
        await all(stream);
        assert.deepEqual(left, [2000, 2000]);
      });
    });

    test("a stream that nobody holds any more is let go of", async () => {
      const source = new Played([["a", HANG]]);
      await retryStream(source.fn, QUICK).next();
      for (let i = 0; i < 1000 && source.closed === 0; i++) {
        gc();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      assert.equal(source.closed, 1);
    });

    test("generator functions are refused elsewhere, and pointed here", () => {
      const policy = new Policy(QUICK);
      async function* words(): AsyncGenerator<string> {
        yield "a";
      }
      assert.throws(() => policy.wrap(words), /the generator function words.*use retryStream/);
      return assert.rejects(
        retry(function* () {}, QUICK),
        ConfigError,
      );
    });
  });
}
