/** What the events of an answer say: what is held back, an end, an error, usage. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { retryStream, StreamError, traceOf } from "../../driver/index.js";
import { QUICK } from "../setup.js";
import { all, cut, Played, play } from "./sources.js";

export function answers(): void {
  describe("answers", () => {
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
  });
}
