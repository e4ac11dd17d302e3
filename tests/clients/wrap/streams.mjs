/** Streams of a wrapped client: tried again until their first content, and the SDK's own. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { OFTEN, QUICK, records, TEXT, thrown } from "../setup.mjs";
import { PRICES } from "./sdks.mjs";

export function streams(place, sdk) {
  const { traceOf } = place.reprieve;
  const { Class, name, opened, read } = sdk;
  describe("streams", () => {
    test("a stream is tried again until its first content", async () => {
      const { client, ask, count } = opened({ ...QUICK, maxAttempts: 4 });
      const stream = await ask("#[503,sse-cut=0,sse-error=0,ok]", { stream: true });
      assert.ok(stream.controller instanceof AbortController);
      assert.equal(await read(stream), TEXT);
      assert.equal(traceOf(stream).ended.attempts, 4);
      assert.equal(await count(), 4);
      const messages = [{ role: "user", content: "#[sse-cut=0,503,ok]" }];
      assert.equal(await sdk.helper(client, { messages }), TEXT);
      assert.equal(await count(), 7);
      const hasty = opened({ ...QUICK, maxAttempts: OFTEN, attemptTimeout: 300 });
      assert.equal(await read(await hasty.ask("#[sse-stall=0,ok]", { stream: true })), TEXT);
    });

    test("a stream that breaks later is not repeated; what was delivered is recorded", async () => {
      const told = records();
      const { ask, count } = opened(QUICK, { sink: told.sink });
      const stream = await ask("#[sse-error=2]", { stream: true });
      const error = await thrown(read(stream));
      assert.ok(error instanceof Class.APIError);
      assert.equal(traceOf(error).ended.reason, "already_delivered");
      assert.ok(told.lines[0].delivered > 0);
      assert.equal(await count(), 1);
    });

    test("a stream that ends without its finish frame is an error", async () => {
      const { ask, count } = opened({ ...QUICK, attemptTimeout: 300_000 });
      const error = await thrown(ask("#[empty]", { stream: true }));
      assert.ok(error instanceof Class.APIError);
      assert.match(error.message, /nothing in it/);
      assert.equal(await count(), 3);
    });

    test("a stream's usage is priced, and it can be split", async () => {
      const told = records();
      const { client } = opened(QUICK, { sink: told.sink, prices: PRICES });
      const body = {
        messages: [{ role: "user", content: "#[ok]" }],
        stream: true,
      };
      if (name === "openai") body.stream_options = { include_usage: true };
      const [one, other] = (await sdk.create(client, body)).tee();
      assert.deepEqual(await Promise.all([read(one), read(other)]), [TEXT, TEXT]);
      assert.ok(told.lines[0].output_tokens > 0 && told.lines[0].cost > 0);
    });
  });
}
