/** `wrap`: a client of an SDK under a policy, in one line. No SDK is imported. */
import { currentAttempt } from "./attempt.js";
import { ConfigError } from "./errors.js";
import { headerOf, Plan, refuseRetries } from "./plan.js";
import type { Bound, Policy } from "./policy.js";
import { checkedPrices } from "./prices.js";
import { counting, Request, SENT_BY } from "./request.js";
import { boundOf } from "./retry.js";
import { type Client, copied, isChosen, quiet, type RequestOptions, sdkOf } from "./sdk.js";
import { modeOf } from "./stream.js";
import type { CallOptions, PolicyFields, PresetName, Prices } from "./types.js";

/** What `wrap` takes beside a policy: the options of its calls, and what clients need. */
export interface WrapOptions<T> extends Omit<CallOptions, "targets" | "traceId" | "idempotencyKey"> {
  /** What a million tokens of a model cost: receipts, results and runs then have a cost. */
  prices?: Prices | undefined;
  /** Sends the call's idempotency key, one for all its attempts, as `Idempotency-Key` or a header of another name. */
  idempotency?: boolean | string | undefined;
  /** The client for a target of the policy, by its id: of the same SDK, not wrapped. */
  clients?: { readonly [target: string]: T } | undefined;
}

const wrapped = /* @__PURE__ */ new WeakSet<object>();

/**
 * A new client of the same type whose every request runs under the policy. The old one stays as it is.
 *
 * Takes a client of `openai` 5 to 7 (Azure's too) or of `@anthropic-ai/sdk` 1 and late 0; a policy, one with options
 * bound, the name of a preset, or fields. The client's own retries are off. What derives from it (`withOptions`, `beta`,
 * resources, pages) is wrapped as well and refuses `maxRetries`, but for 0, which means one attempt. An attempt ends at
 * its timeout, and at the client's own where that was chosen and is shorter. A body is read within its attempt, unless
 * `asResponse()` takes it as it comes. A stream may be tried again until its first content. A request's body that can be
 * sent once is kept, up to 1 MiB, and refused beyond. What `prepare` and `repair` get is the body of the request.
 *
 * When a call gives up it throws the SDK's own error. `traceOf` has the trace of that error, of an answer, and of a
 * stream that was read to its end.
 *
 * Throws `ConfigError` for a client that is not known or wrapped already, and for an SDK out of range.
 *
 * ```js
 * const client = wrap(new OpenAI(), "interactive", { scene: "support-chat" });
 * await client.chat.completions.create({ model: "gpt-5", messages: [{ role: "user", content: "Hello" }] });
 * ```
 */
export function wrap<T extends object>(
  client: T,
  policy?: Bound | PolicyFields | PresetName,
  options: WrapOptions<T> = {},
): T {
  const { prices, idempotency, clients, ...rest } = options;
  refuseWrapped("client", client);
  const sdk = sdkOf(client);
  const given = client as unknown as Client;
  const owner = boundOf(policy).bind(ownOptions(rest));
  refuseMode(owner.policy);
  const own = isChosen(given, given.timeout) ? ", at most its own" : "";
  const plan = new Plan(owner, {
    _changed: `${sdk}: maxRetries ${given.maxRetries} -> 0, timeout ${given.timeout / 1e3} s -> the attempt's${own}`,
    _prices: prices && checkedPrices(prices),
    _header: headerOf(idempotency),
    _clients: others(owner, sdk, clients ?? {}),
  });
  return armed(quiet(given), plan) as unknown as T;
}

/** Makes every request of this client a call under the plan. */
function armed(client: Client, plan: Plan): Client {
  const { makeRequest, request, requestAPIList, withOptions } = client;
  // The options carry a request through the SDK's own layers; the SDK's promise tells it how its body is read.
  const own = {
    request(options: unknown, remaining?: number | null) {
      const sent = new Request(client, plan, currentAttempt());
      return sent._reads(request.call(client, sent._marked(options), remaining));
    },
    requestAPIList(page: unknown, options: unknown) {
      const sent = new Request(client, plan, currentAttempt());
      return sent._reads(requestAPIList.call(client, page, sent._marked(options)));
    },
    async makeRequest(asked: RequestOptions, remaining: number | null, logId?: string, span?: unknown) {
      const { [SENT_BY]: sent, ...options } = (await asked) as RequestOptions & { [SENT_BY]?: Request };
      if (!sent) return makeRequest.call(client, options, remaining, logId, span);
      return sent._run(options, (at, attempt) =>
        (at === client ? makeRequest : at.makeRequest).call(at, attempt, 0, undefined, span),
      );
    },
    withOptions(options: { maxRetries?: number }) {
      const once = refuseRetries(options.maxRetries);
      return armed(copied(client, options, { withOptions }), once ? plan._once : plan);
    },
  };
  for (const [name, value] of Object.entries(own)) {
    Object.defineProperty(client, name, { value, writable: true, configurable: true });
  }
  client.fetch = counting(client.fetch);
  wrapped.add(client);
  return client;
}

function refuseWrapped(field: string, client: object): void {
  if (wrapped.has(client))
    throw new ConfigError(field, "a client that is wrapped already", "one that is not: one policy is enough");
}

function refuseMode(policy: Policy): void {
  const { _mode: mode } = modeOf(policy);
  if (mode !== "restart" && mode !== "resume") return;
  const allowed =
    '"before_first_item" or "buffered" for a wrapped client, whose streams keep their type; use retryStream';
  throw new ConfigError("stream.mode", `"${mode}"`, allowed);
}

function ownOptions(given: CallOptions): CallOptions {
  for (const name of ["traceId", "idempotencyKey", "targets"] as const) {
    if (given[name] == null) continue;
    const instead = name === "targets" ? "clients, by the target's id" : "nothing here: each call has one of its own";
    throw new ConfigError(name, "a value for all calls of a client", instead);
  }
  return given;
}

function others(owner: Bound, sdk: string, clients: { readonly [target: string]: object }): Record<string, Client> {
  if (typeof clients !== "object")
    throw new ConfigError("clients", String(clients), "an object from target id to client");
  const out: Record<string, Client> = {};
  for (const [target, client] of Object.entries(clients)) {
    const field = `clients.${target}`;
    const targets = owner.policy._loads() ? owner.policy.targets : [target];
    if (!targets.includes(target)) throw new ConfigError(field, "a client", `a target of the policy: ${targets}`);
    refuseWrapped(field, client);
    const found = sdkOf(client);
    if (found !== sdk) throw new ConfigError(field, `a client of ${found}`, `a client of ${sdk}, as the wrapped one`);
    const copy = quiet(client as Client);
    copy.fetch = counting(copy.fetch);
    out[target] = copy;
  }
  return out;
}
