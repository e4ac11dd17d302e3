/** `check`, `prepare` and `repair` around the real `openai` client and zod, against the gateway, over one engine. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import OpenAI from "openai";
import { z } from "zod";

import { gatewayForTests, QUICK, reprieveOn, thrown } from "./setup.mjs";

const Greeting = z.object({ greeting: z.string() });

export async function suite(engine) {
  const { BadOutput, Policy, retry, traceOf, wrap } = await reprieveOn(engine);
  const gateway = await gatewayForTests();
  let drills = 0;

  const opened = () => {
    const drill = `${engine}-requests-${++drills}`;
    const client = new OpenAI({
      apiKey: "old",
      baseURL: `${gateway.url}/v1`,
      defaultHeaders: { "x-drill-id": drill },
      maxRetries: 0,
    });
    const played = async () => (await gateway.requests(drill)).map((request) => request.played);
    return { client, played };
  };
  const asked = (marker, ...before) => ({
    model: "m",
    messages: [...before, `Say hello. #[${marker}]`].map((content) => ({ role: "user", content })),
  });
  const text = (answer) => answer.choices[0].message.content;
  const kinds = (error) => traceOf(error).receipts.map((receipt) => receipt.kind);

  describe(`requests of openai over ${engine}`, () => {
    test("a token is refreshed", async () => {
      const { client, played } = opened();
      const tokens = [];
      const refresh = (_, failure) => {
        assert(failure.error instanceof OpenAI.AuthenticationError);
        tokens.push("new");
        client.apiKey = "new";
      };
      const policy = new Policy({ ...QUICK, maxAttempts: 1 }).bind({ repair: { auth_failed: refresh } });
      const ask = policy.wrap((request) => client.chat.completions.create(request));
      assert(text(await ask(asked("401,ok"))));
      assert.deepEqual([await played(), tokens], [["401", "ok"], ["new"]]);
      const error = await thrown(ask(asked("401")));
      assert(error instanceof OpenAI.AuthenticationError);
      assert.deepEqual(
        traceOf(error).receipts.map((receipt) => receipt.reason),
        ["repair", "not_retryable"],
      );
    });

    test("messages are shrunk", async () => {
      const { client, played } = opened();
      const sent = [];
      const shrink = (request) => ({ ...request, messages: request.messages.slice(-1) });
      const answer = await retry(
        (attempt) => {
          sent.push(attempt.request.messages.length);
          return client.chat.completions.create(attempt.request, { signal: attempt.signal });
        },
        QUICK,
        { request: asked("context,ok", "a", "b", "c"), repair: { context_length_exceeded: shrink } },
      );
      assert(text(answer));
      assert.deepEqual(
        [await played(), sent],
        [
          ["context", "ok"],
          [4, 1],
        ],
      );
    });

    test("what zod throws is fed back", async () => {
      const { client } = opened();
      const sent = [];
      const feedBack = async (request, { message, value }) => ({
        ...request,
        messages: [
          ...request.messages,
          value.choices[0].message,
          { role: "user", content: `Not valid: ${message} #[ok]` },
        ],
      });
      const error = await thrown(
        retry(
          (attempt) => {
            sent.push(attempt.request.messages);
            return client.chat.completions.create(attempt.request);
          },
          { ...QUICK, maxAttempts: 1 },
          {
            request: asked("ok"),
            check: (answer) => Greeting.parse({ greeting: text(answer).length }),
            repair: { schema_invalid: feedBack },
          },
        ),
      );
      assert(error instanceof z.ZodError);
      assert.deepEqual(kinds(error), ["schema_invalid", "schema_invalid"]);
      assert.deepEqual(
        sent[1].map(({ role }) => role),
        ["user", "assistant", "user"],
      );
      assert.match(sent[1][2].content, /expected string, received number/);
      const trace = traceOf(error);
      assert(trace.ended.output_tokens > 0);
      assert.equal(
        trace.ended.output_tokens,
        trace.receipts.reduce((sum, receipt) => sum + receipt.output_tokens, 0),
      );
    });

    test("an answer that was cut is a failure where check says so", async () => {
      const { client, played } = opened();
      const finishes = { length: "truncated", content_filter: "content_filtered" };
      const check = (answer) => finishes[answer.choices[0].finish_reason];
      for (const [marker, kind] of [
        ["truncated", "truncated"],
        ["filter", "content_filtered"],
      ]) {
        const error = await thrown(retry(() => client.chat.completions.create(asked(marker)), QUICK, { check }));
        assert(error instanceof BadOutput);
        assert.deepEqual([error.failure.kind, kinds(error)], [kind, [kind]]);
        assert(error.value.choices);
      }
      assert.equal((await played()).length, 2);
    });

    test("a wrapped client's body is the request, and its answer is what check sees", async () => {
      const { client, played } = opened();
      const models = { primary: "gpt-main", backup: "gpt-backup" };
      const seen = [];
      const wrapped = wrap(
        client,
        new Policy({ ...QUICK, maxAttempts: 1, targets: [{ id: "primary" }, { id: "backup" }] }),
        {
          prepare: (request, target) => ({ ...request, model: models[target] }),
          repair: { context_length_exceeded: (request) => ({ ...request, messages: request.messages.slice(-1) }) },
          check: (answer) => {
            seen.push(answer.model);
            return seen.length > 1;
          },
        },
      );
      const answer = await wrapped.chat.completions.create(asked("context,ok,ok", "a"));
      assert.equal(answer.model, "gpt-backup");
      assert.deepEqual(
        [await played(), seen],
        [
          ["context", "ok", "ok"],
          ["gpt-main", "gpt-backup"],
        ],
      );
    });
  });
}
