/** The Vercel AI SDK: several language models as one, under a policy. */
import { Bound, ConfigError, metered, Policy, pricedUsage, retryStream, varied } from "reprieve";
import type { Attempt, CallOptions, PolicyFields, PresetName, Prices } from "reprieve";

/** A language model of the AI SDK, of any version of its interface: `ai` 5, 6 and 7 have V2, V3 and V4. */
export interface LanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: PromiseLike<UrlsByType> | UrlsByType;
  doGenerate(options: never): PromiseLike<unknown>;
  doStream(options: never): PromiseLike<unknown>;
}

/** What `resilient` takes beside a policy: the options of its calls, and what models need. */
export interface ResilientOptions extends Omit<CallOptions, "targets" | "traceId" | "idempotencyKey"> {
  /** What a million tokens of a model cost, by its `modelId`: receipts, results and runs then have a cost. */
  prices?: Prices | undefined;
  /** Sends the call's idempotency key, one for all its attempts, as `Idempotency-Key` or a header of another name. */
  idempotency?: boolean | string | undefined;
}

type UrlsByType = Record<string, RegExp[]>;
type Asked = { readonly abortSignal?: AbortSignal; readonly headers?: Record<string, string | undefined> };
type Part = { readonly type: string; readonly error?: unknown; readonly finishReason?: unknown };
type Streamed = { readonly stream: ReadableStream<Part> };

/** A model, as far as it is called here. */
interface Model extends LanguageModel {
  doGenerate(options: object): PromiseLike<object>;
  doStream(options: object): PromiseLike<Streamed>;
}

/**
 * A language model that asks the first of these models, tries again what may pass, and goes on to the next one. It is of
 * the same type as they are: `generateText`, `streamText` and agents take it. The policy's targets are the models, in
 * order; a policy that lists none of its own has theirs.
 *
 * A stream may be tried again until its first content (text, reasoning, a tool call) is there. What is thrown when a call
 * gives up is the SDK's own error, no longer `isRetryable`: the `maxRetries` of the SDK add nothing to it.
 *
 * ```js
 * const model = resilient([openai("gpt-5"), anthropic("claude-sonnet-5")], "interactive");
 * const { text } = await generateText({ model, prompt: "What is a retry budget?" });
 * ```
 */
export function resilient<M extends LanguageModel>(
  models: M | readonly M[],
  policy?: Bound | PolicyFields | PresetName,
  options: ResilientOptions = {},
): M {
  const all = [models].flat() as unknown as Model[];
  for (const [i, model] of all.entries()) refuseOther(model, `models[${i}]`);
  const { prices, idempotency, ...rest } = options;
  const owner = chained(policy, all).bind(rest);
  const header = idempotency === true ? "Idempotency-Key" : idempotency || undefined;
  const chain: Chain = { _owner: owner, _models: new Map(owner.policy.targets.map((id, i) => [id, all[i] as Model])), _prices: prices, _header: header };
  const { specificationVersion, provider, modelId } = all[0] as Model;
  const made = {
    specificationVersion,
    provider,
    modelId,
    get supportedUrls() {
      return all.length === 1 ? (all[0] as Model).supportedUrls : common(all);
    },
    doGenerate: (asked: Asked) => generate(chain, asked),
    doStream: (asked: Asked) => stream(chain, asked),
  };
  return made as unknown as M;
}

/** The models of a policy's targets, and what their calls need. */
interface Chain {
  readonly _owner: Bound;
  readonly _models: ReadonlyMap<string, Model>;
  readonly _prices: Prices | undefined;
  readonly _header: string | undefined;
}

async function generate(chain: Chain, asked: Asked): Promise<object> {
  try {
    return await bound(chain, asked).call((attempt) => at(chain, attempt).doGenerate(given(chain, asked, attempt)));
  } catch (error) {
    throw final(error);
  }
}

async function stream(chain: Chain, asked: Asked): Promise<Streamed> {
  let latest: Streamed | undefined;
  const parts = retryStream(async (attempt: Attempt) => {
    latest = await at(chain, attempt).doStream(given(chain, asked, attempt));
    return read(latest.stream);
  }, bound(chain, asked));
  try {
    await parts.open();
  } catch (error) {
    throw final(error);
  }
  const told = new ReadableStream<Part>(
    {
      async pull(controller) {
        try {
          const { done, value } = await parts.next();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          // The SDK's way to end a stream that breaks amid its answer.
          controller.enqueue({ type: "error", error: final(error) });
          controller.close();
        }
      },
      cancel: () => parts.cancel(),
    },
    { highWaterMark: 0 },
  );
  return { ...latest, stream: told };
}

/** The parts, with what tells of a failure thrown. */
function read(stream: ReadableStream<Part>): AsyncIterable<Part> {
  const reader = stream.getReader();
  const next = async (): Promise<IteratorResult<Part>> => {
    const { done, value } = await reader.read();
    if (value?.type === "error") throw value.error;
    if (value?.type === "finish" && isCut(value.finishReason)) {
      throw Object.assign(new Error("the stream ended without a finish reason"), { status: 200, code: "eof_without_finish" });
    }
    return done ? { done, value: undefined } : { done: false, value };
  };
  const close = async (): Promise<IteratorResult<Part>> => {
    await reader.cancel();
    return { done: true, value: undefined };
  };
  return { [Symbol.asyncIterator]: () => ({ next, return: close }) };
}

/** Providers finish a stream that was cut for a reason that nobody gave. */
function isCut(reason: unknown): boolean {
  const { unified, raw } = (Object(reason) === reason ? reason : {}) as { unified?: string; raw?: string };
  return reason === "unknown" || (unified === "other" && raw === undefined);
}

const at = (chain: Chain, { target }: Attempt): Model => chain._models.get(target) as Model;

function given({ _header: header }: Chain, asked: Asked, attempt: Attempt): object {
  const headers = header ? { [header]: attempt.idempotencyKey, ...asked.headers } : asked.headers;
  return { ...asked, headers, abortSignal: attempt.signal };
}

/** The options of one call: its signal, and how its answers tell what they cost. */
function bound({ _owner: owner, _prices: prices }: Chain, { abortSignal }: Asked): Bound {
  const signal = abortSignal && owner._signal ? AbortSignal.any([abortSignal, owner._signal]) : abortSignal;
  return owner;
}

/** The SDK would begin a call anew that has given up. */
function final(error: unknown): unknown {
  if ((error as { isRetryable?: unknown } | undefined)?.isRetryable === true) {
    try {
      Object.defineProperty(error, "isRetryable", { value: false, enumerable: true, configurable: true });
    } catch {
      // Frozen by somebody: it says what it says.
    }
  }
  return error;
}
