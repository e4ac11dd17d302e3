/** The example of a complete client, as a reader would run it: in a folder of its own, with the packages installed. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { ROOT, TESTS } from "../js/paths.mjs";
import { gatewayForTests, QUICK, TEXT } from "./setup.mjs";

const folder = mkdtempSync(join(tmpdir(), "llm-client-"));
after(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, "node_modules"));
symlinkSync(`${ROOT}bindings-node`, join(folder, "node_modules/reprieve"));
symlinkSync(`${TESTS}node_modules/openai`, join(folder, "node_modules/openai"));
const file = join(folder, "llm-client.mjs");
copyFileSync(`${ROOT}bindings-node/examples/llm-client.mjs`, file);

const { LlmClient } = await import(file);
const { Policy } = await import(`${ROOT}bindings-node/dist/node/index.js`);
const gateway = await gatewayForTests();

/** A client of the gateway, and its log. */
function opened(env = {}, options = {}) {
  const log = [];
  const all = {
    LLM_BASE_URL: `${gateway.url}/v1`,
    LLM_API_KEY: "none",
    LLM_MODEL: "gpt-5",
    ...env,
  };
  const policy = Policy.preset("llm").with(QUICK);
  const prices = { "gpt-5": { input: 1, output: 2 } };
  return {
    client: LlmClient.fromEnv({ policy, prices, log: (line) => log.push(JSON.parse(line)), ...options }, all),
    log,
  };
}

test("chat answers text, attempts, latency and cost, and logs a line", async () => {
  const { client, log } = opened();
  const { ok, text, attempts, latency, cost, usage } = await client.chat("One. #[503,429,ok]", { scene: "support" });
  assert.deepEqual([ok, text, attempts], [true, TEXT, 3]);
  assert.ok(latency > 0);
  assert.equal(cost, (usage.inputTokens + usage.outputTokens * 2) / 1e6);
  const [{ scene, model, attempts: logged, cost: priced }] = log;
  assert.deepEqual([log.length, scene, model, logged, priced], [1, "support", "gpt-5", 3, cost]);
});

test("a failure is a result, and chatOrEmpty is empty", async () => {
  const { client, log } = opened();
  const { ok, text, error, reason, attempts, cost } = await client.chat("Two. #[401]");
  assert.deepEqual([ok, text, error.status, reason, attempts, cost], [false, "", 401, "not_retryable", 1, undefined]);
  // The account is benched now, as the policy says: another client.
  const other = opened();
  assert.equal(await other.client.chatOrEmpty("Three. #[500]"), "");
  assert.deepEqual([log[0].kind, other.log[0].kind], ["auth_failed", "server_error"]);
});

test("the backup is asked when the primary is used up", async () => {
  const { client, log } = opened({ LLM_BACKUP_MODEL: "gpt-5-mini" });
  const { ok, text, attempts, model, cost } = await client.chat("Four. #[500x3]");
  assert.deepEqual([ok, text, attempts, model, cost], [true, TEXT, 4, "gpt-5-mini", undefined]);
  assert.equal(log.length, 1);
});

test("a signal ends a call", async () => {
  const { client } = opened();
  const { ok, error, reason } = await client.chat("Five. #[slow=600000]", {
    signal: AbortSignal.timeout(50),
  });
  assert.deepEqual([ok, error.name, reason], [false, "TimeoutError", "cancelled"]);
});

test("it says what is missing", () => {
  assert.throws(() => LlmClient.fromEnv({}, {}), /LLM_MODEL is not set: it names the model/);
});

test("it runs from a shell", () => {
  const env = {
    ...process.env,
    LLM_BASE_URL: `${gateway.url}/v1`,
    LLM_API_KEY: "none",
    LLM_MODEL: "gpt-5",
  };
  const said = execFileSync(process.execPath, [file, "Six."], {
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  assert.equal(said, `${TEXT}\n`);
});
