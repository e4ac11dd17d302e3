/** Who takes the items: one by one, once, and leaving when they like. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MisuseError, retryStream, wrapFetch } from "../../driver/index.js";
import { QUICK, turn } from "../setup.js";
import { all, gc, HANG, Played } from "./sources.js";

export function consumers(): void {
  describe("consumers", () => {
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

    test("a stream that nobody holds any more is let go of", async () => {
      const source = new Played([["a", HANG]]);
      await retryStream(source.fn, QUICK).next();
      for (let i = 0; i < 1000 && source.closed === 0; i++) {
        gc();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      assert.equal(source.closed, 1);
    });

    test("so is a response, with its connection", async () => {
      let left = 0;
      const body = (): ReadableStream<Uint8Array> =>
        new ReadableStream(
          {
            pull: (controller) => controller.enqueue(new Uint8Array(1)),
            cancel: () => {
              left += 1;
            },
          },
          { highWaterMark: 0 },
        );
      const send = wrapFetch(async () => new Response(body()), QUICK);
      assert.equal((await send()).status, 200);
      for (let i = 0; i < 1000 && left === 0; i++) {
        gc();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      assert.equal(left, 1);
    });
  });
}
