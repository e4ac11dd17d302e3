/** What is read of the errors that clients throw, by what the core takes them for. The shapes are those of real SDKs. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { AttemptTimeout, classify, setEngine } from "../driver/index.js";
import { engines } from "./engines.js";

setEngine(() => engines.wasm as never);

// openai and @anthropic-ai/sdk: `.name` is "Error", the class tells; headers are a `Headers`.
class APIError extends Error {
  constructor(
    readonly status: number | undefined,
    readonly error: object | undefined,
    headers: Record<string, string> = {},
  ) {
    super(`${status} ${JSON.stringify(error)}`);
    this.headers = new Headers(headers);
    Object.assign(this, { code: (error as any)?.code, type: (error as any)?.type });
  }
  readonly headers: Headers;
}
class RateLimitError extends APIError {}
class APIConnectionError extends APIError {}
class APIConnectionTimeoutError extends APIConnectionError {}
class APIUserAbortError extends APIError {}

const withCode = (code: unknown, message = "failed", more: object = {}): Error =>
  Object.assign(new Error(message), { code }, more);
const named = (name: string, more: object): Error => Object.assign(new Error("failed"), { name }, more);
const withCause = (message: string, cause: unknown): TypeError => new TypeError(message, { cause });

const cases: [string, unknown, object][] = [
  [
    "openai, out of money under 429",
    new RateLimitError(429, {
      message: "You exceeded your current quota",
      code: "insufficient_quota",
      type: "insufficient_quota",
    }),
    { kind: "billing", code: "insufficient_quota" },
  ],
  [
    "openai, a rate limit with its header",
    new RateLimitError(
      429,
      { message: "Slow down", code: "rate_limit_exceeded", type: "tokens" },
      { "retry-after-ms": "1500" },
    ),
    { kind: "rate_limit", retryAfter: 1500, retryAfterSource: "header" },
  ],
  [
    "anthropic, the whole body in `error`",
    new APIError(529, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }),
    { kind: "overloaded" },
  ],
  [
    "openai, no connection",
    Object.assign(new APIConnectionError(undefined, undefined), {
      cause: withCause("fetch failed", withCode("ECONNREFUSED")),
    }),
    { kind: "transport", mayHaveExecuted: false },
  ],
  ["openai, too slow", new APIConnectionTimeoutError(undefined, undefined), { kind: "timeout" }],
  ["openai, aborted by its user", new APIUserAbortError(undefined, undefined), { kind: "cancelled" }],
  ["undici, reset", withCause("fetch failed", withCode("ECONNRESET")), { kind: "transport", decidedBy: "os_code" }],
  [
    "undici, connect timeout",
    withCause("fetch failed", withCode("UND_ERR_CONNECT_TIMEOUT")),
    { kind: "timeout", mayHaveExecuted: false },
  ],
  [
    "undici, both families refused",
    withCause("fetch failed", new AggregateError([withCode("ECONNREFUSED"), withCode("ECONNREFUSED")])),
    { kind: "transport" },
  ],
  [
    "undici, cut in the body",
    withCause("terminated", withCode("UND_ERR_SOCKET", "other side closed")),
    { kind: "stream_interrupted" },
  ],
  ["Chromium", new TypeError("Failed to fetch"), { kind: "transport" }],
  ["Firefox", new TypeError("NetworkError when attempting to fetch resource."), { kind: "transport" }],
  ["Safari", new TypeError("Load failed"), { kind: "transport" }],
  ["a TypeError of the caller's own code", new TypeError("x is not a function"), { kind: "unknown" }],
  [
    "fetch, its response thrown",
    new Response("busy", { status: 503, headers: { "retry-after": "3" } }),
    { kind: "overloaded", retryAfter: 3000 },
  ],
  [
    "axios, an answer",
    withCode("ERR_BAD_RESPONSE", "failed", {
      name: "AxiosError",
      response: { status: 500, headers: { a: "b" }, data: { error: { message: "boom" } } },
    }),
    { kind: "server_error" },
  ],
  [
    "axios, its timeout",
    withCode("ECONNABORTED", "timeout of 10ms exceeded", { name: "AxiosError" }),
    { kind: "timeout" },
  ],
  ["axios, no network", withCode("ERR_NETWORK", "Network Error", { name: "AxiosError" }), { kind: "transport" }],
  ["axios, cancelled", named("CanceledError", { code: "ERR_CANCELED" }), { kind: "cancelled" }],
  [
    "AWS, throttled",
    named("ThrottlingException", { $fault: "client", $metadata: { httpStatusCode: 429 } }),
    { kind: "rate_limit", code: "ThrottlingException" },
  ],
  ["AWS, no credentials", named("CredentialsProviderError", {}), { kind: "auth_failed" }],
  [
    "Google, the body in the message",
    named("ApiError", {
      status: 429,
      message:
        '{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"12s"}]}}',
    }),
    { kind: "rate_limit", retryAfter: 12_000 },
  ],
  [
    "gRPC",
    withCode(14, "14 UNAVAILABLE: No connection established", { details: "No connection established", metadata: {} }),
    { kind: "overloaded", code: "UNAVAILABLE" },
  ],
  [
    "the AI SDK",
    named("AI_APICallError", {
      statusCode: 429,
      responseHeaders: { "retry-after": "2" },
      responseBody: '{"error":{"message":"slow"}}',
    }),
    { kind: "rate_limit", retryAfter: 2000 },
  ],
  ["got", named("HTTPError", { response: { statusCode: 404, body: "no", headers: {} } }), { kind: "not_found" }],
  ["zod", named("ZodError", { issues: [] }), { kind: "schema_invalid" }],
  ["JSON that is none", new SyntaxError("Unexpected token < in JSON"), { kind: "parse_error" }],
  ["DOM, timed out", new DOMException("late", "TimeoutError"), { kind: "timeout" }],
  ["DOM, aborted", new DOMException("stop", "AbortError"), { kind: "cancelled" }],
  ["Node, aborted", withCode("ABORT_ERR", "The operation was aborted", { name: "AbortError" }), { kind: "cancelled" }],
  [
    "an abort further down is not the caller's",
    new Error("x", { cause: new DOMException("stop", "AbortError") }),
    { kind: "unknown" },
  ],
  ["a timeout of ours, from an inner call", new AttemptTimeout("late"), { kind: "timeout" }],
  ["a prompt that says 429", new Error("you said: 429 rate limit"), { kind: "unknown" }],
  ["a file", withCode("ENOENT"), { kind: "unknown" }],
  [
    "bytes for a body",
    Object.assign(new Error("x"), {
      status: 400,
      body: new TextEncoder().encode('{"error":{"code":"context_length_exceeded"}}'),
    }),
    { kind: "context_length_exceeded" },
  ],
  ["text", "plain words", { kind: "unknown", message: "plain words" }],
  ["nothing", undefined, { kind: "unknown" }],
];

for (const [name, error, expected] of cases) {
  test(name, () => {
    const { ...seen } = classify(error);
    const told = Object.fromEntries(Object.keys(expected).map((key) => [key, (seen as any)[key]]));
    assert.deepEqual(told, expected);
  });
}
