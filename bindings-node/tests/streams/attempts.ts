/** Sources, the attempts that a stream makes, and its modes. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ConfigError, Discard, Policy, retry, retryStream, traceOf } from "../../driver/index.js";
import { virtual } from "../../driver/testing.js";
import { QUICK, turn } from "../setup.js";
import { all, cut, Played, play, readable } from "./sources.js";

export function attempts(): void {
  describe("attempts", () => {
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

    test("open() begins, and waits for the first content", async () => {
      const source = new Played([[cut()], ["a", "b"]]);
      const stream = await retryStream(source.fn, QUICK).open();
      assert.deepEqual([source.attempts, source.pulls], [2, 2]);
      assert.deepEqual(await all(stream), { items: ["a", "b"] });
      const fails = Object.assign(new Error("no"), { status: 400 });
      await assert.rejects(retryStream(() => Promise.reject(fails), QUICK).open(), fails);
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
