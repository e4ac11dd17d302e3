/** The Vercel AI SDK: several language models as one, under a policy. */
import { type Attempt, type Bound, ConfigError, headerOf, retryStream, StreamError } from "reprieve";
import { type Chain, type ChainOptions, chainOf, counted, noted, type PolicyLike } from "./chain.js";

/** A language model of the AI SDK, of any version of its interface: `ai` 5, 6 and 7 have V2, V3 and V4. */
export interface LanguageModel {
  readonly specificationVersion: string;
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: PromiseLike<UrlsByType> | UrlsByType;
  doGenerate(options: never): PromiseLike<unknown>;
  doStream(options: never): PromiseLike<unknown>;
}

/** What `resilient` takes beside a policy. */
export interface ResilientOptions extends ChainOptions {
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
  policy?: PolicyLike,
  options: ResilientOptions = {},
): M {
  const { idempotency, ...rest } = options;
  const all = [models].flat() as unknown as Model[];
  for (const [i, model] of all.entries()) refuseOther(`models[${i}]`, model);
  const chain = chainOf(all, ({ modelId }) => modelId, policy, rest);
  const header = headerOf(idempotency);
  const [first] = all as [Model];
  const made = {
    specificationVersion: first.specificationVersion,
    provider: first.provider,
    modelId: first.modelId,
    get supportedUrls() {
      return all.length === 1 ? first.supportedUrls : commonUrls(all);
    },
    doGenerate: (asked: Asked) => new Call(chain, asked, header).generate(),
    doStream: (asked: Asked) => new Call(chain, asked, header).stream(),
  };
  return noted(made) as unknown as M;
}

/** One call. */
class Call {
  private latest: Model | undefined;
  private readonly bound: Bound;

  constructor(
    private readonly chain: Chain<Model>,
    asked: Asked,
    private readonly header: string | undefined,
  ) {
    this.bound = counted(chain, {
      request: asked,
      signal: asked.abortSignal,
      read: (answer) => answer,
      model: () => this.latest?.modelId,
    });
  }

  async generate(): Promise<object> {
    try {
      return await this.bound.call((attempt) => this.model(attempt).doGenerate(this.given(attempt)));
    } catch (error) {
      throw final(error);
    }
  }

  /** Answers once there is content. */
  async stream(): Promise<Streamed> {
    let latest: Streamed | undefined;
    const parts = retryStream<Part>(async (attempt) => {
      latest = await this.model(attempt).doStream(this.given(attempt));
      return read(latest.stream);
    }, this.bound);
    try {
      await parts.open();
    } catch (error) {
      throw final(error);
    }
    return { ...latest, stream: told(parts) };
  }

  private model({ target }: Attempt): Model {
    this.latest = this.chain.of(target);
    return this.latest;
  }

  private given(attempt: Attempt): object {
    const asked = attempt.request as Asked;
    const headers = this.header ? { [this.header]: attempt.idempotencyKey, ...asked.headers } : asked.headers;
    return { ...asked, headers, abortSignal: attempt.signal };
  }
}

/** What is delivered; a failure amid the answer is a part, which is how the SDK tells of one. */
function told(parts: { next(): Promise<IteratorResult<Part, undefined>>; cancel(): void }): ReadableStream<Part> {
  const pull = async (controller: ReadableStreamDefaultController<Part>): Promise<void> => {
    try {
      const { done, value } = await parts.next();
      if (done) controller.close();
      else controller.enqueue(value);
    } catch (error) {
      controller.enqueue({ type: "error", error: final(error) });
      controller.close();
    }
  };
  return new ReadableStream({ pull, cancel: () => parts.cancel() }, { highWaterMark: 0 });
}

/** The parts, with what tells of a failure thrown. */
function read(stream: ReadableStream<Part>): AsyncIterable<Part> {
  const reader = stream.getReader();
  const next = async (): Promise<IteratorResult<Part>> => {
    const { done, value } = await reader.read();
    if (value?.type === "error") throw value.error;
    if (value?.type === "finish" && isCut(value.finishReason)) {
      throw new StreamError("the stream ended without a finish reason", "eof_without_finish");
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

function refuseOther(field: string, model: Model): void {
  const is = Object(model) === model && typeof model.doGenerate === "function" && typeof model.doStream === "function";
  if (is && /^v\d+$/.test(model.specificationVersion)) return;
  const found = typeof model === "string" ? `the name ${model}` : typeof model;
  throw new ConfigError(field, found, 'a language model of the AI SDK, such as openai("gpt-5")');
}

/** What every model reads from its URL by itself; the SDK downloads the rest. */
async function commonUrls(all: readonly Model[]): Promise<UrlsByType> {
  const [first, ...others] = await Promise.all(all.map((model) => model.supportedUrls));
  const kept = Object.entries(first as UrlsByType).map(([type, patterns]): [string, RegExp[]] => [
    type,
    patterns.filter(({ source }) => others.every((urls) => urls[type]?.some((other) => other.source === source))),
  ]);
  return Object.fromEntries(kept);
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
