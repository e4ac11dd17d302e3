/** A wrapped client whose request is cut: by a timeout, by a signal, by who no longer holds it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { NEVER, OFTEN, QUICK, records, TEXT, thrown, until } from "../setup.mjs";

/** Collects garbage now. */
setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");

export function ends(place, sdk) {
  const { gateway } = place;
  const { traceOf } = place.reprieve;
  const { Class, name, opened } = sdk;
  describe("ends", () => {
    test("a timeout is the SDK's own, and so is an abort of the caller's", async () => {
      const { ask, count } = opened({
        ...QUICK,
        attemptTimeout: 60,
        maxAttempts: 2,
      });
      const late = await thrown(ask(`#[${NEVER}]`));
      assert.ok(late instanceof Class.APIConnectionTimeoutError);
      assert.equal(late.cause.name, "AttemptTimeout");
      assert.equal(traceOf(late).receipts.length, 2);
      assert.ok((await count()) <= 2);
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 20);
      const aborted = await thrown(ask(`#[${NEVER}]`, { signal: controller.signal }));
      assert.ok(aborted instanceof Class.APIUserAbortError);
    });

    test("a timeout that was chosen for the client or a request binds an attempt", async () => {
      for (const of of [(client) => [{}, client.withOptions({ timeout: 250 })], () => [{ timeout: 250 }]]) {
        const { ask, client, drill } = opened({ ...QUICK, maxAttempts: OFTEN });
        assert.equal(sdk.text(await ask(`#[${NEVER},ok]`, ...of(client))), TEXT);
        const [first, ...others] = (await gateway.requests(drill)).map(({ played }) => played);
        assert.deepEqual([first, [...new Set(others)]], [NEVER, ["ok"]]);
      }
    });

    test("the consumer of a stream stops it: by leaving, by its controller, by a signal", async () => {
      const told = records();
      const { ask } = opened(QUICK, { sink: told.sink });
      for await (const _ of await ask("#[sse-stall=2]", { stream: true })) break;
      const stream = await ask("#[sse-stall=2]", { stream: true });
      for await (const _ of stream) stream.controller.abort();
      const controller = new AbortController();
      const signalled = await ask("#[sse-stall=2]", { stream: true, signal: controller.signal });
      const aborted = await thrown(
        (async () => {
          for await (const _ of signalled) controller.abort();
        })(),
      );
      assert.ok(aborted instanceof Class.APIUserAbortError);
      const ends = () => told.lines.filter(({ record }) => record === "call_ended").map(({ reason }) => reason);
      await until(() => ends().length === 3);
      assert.deepEqual(ends(), ["cancelled", "cancelled", "cancelled"]);
    });

    test("a stream that nobody holds any more ends its call", async () => {
      const told = records();
      const { ask } = opened(QUICK, { sink: told.sink });
      const begin = async () => (await ask("#[sse-stall=2]", { stream: true }))[Symbol.asyncIterator]().next();
      assert.equal((await begin()).done, false);
      await until(() => {
        gc();
        return told.lines.length > 0;
      });
      assert.equal(told.lines.at(-1).reason, "cancelled");
    });

    test("a helper that is aborted ends its call", async () => {
      const told = records();
      const { client } = opened(QUICK, { sink: told.sink });
      const messages = [{ role: "user", content: "#[sse-stall=2]" }];
      const body = { model: sdk.model, max_tokens: 50, messages };
      const helper = name === "openai" ? client.chat.completions.stream(body) : client.messages.stream(body);
      helper.once(name === "openai" ? "content" : "text", () => helper.abort());
      assert.ok((await thrown(helper.done())) instanceof Class.APIUserAbortError);
      await until(() => told.lines.at(-1)?.record);
      assert.equal(told.lines.at(-1).reason, "cancelled");
    });
  });
}
