/** LangChain: a chat model or any other runnable under a policy, and a middleware for agents. */
import { type Attempt, type Bound, ConfigError, retryStream } from "reprieve";
import { boundOf, type Chain, type ChainOptions, chainOf, counted, noted, type PolicyLike } from "./chain.js";
import { answerOf, type Item, itemsOf } from "./langchain-answers.js";
import { isChatModel, isRunnable, nameOf, quiet, type Runnable, refuseRetry, rooted } from "./langchain-runnables.js";

export type { ChainOptions, PolicyLike } from "./chain.js";

/** What a model of an agent and its tools are asked under. */
export interface MiddlewareOptions extends ChainOptions {
  /** The policy of tool calls, for instance `"tool"`. Without one a tool is called once: it may have side effects. */
  tools?: PolicyLike | undefined;
  /** The models to go on to, in order. */
  fallbacks?: readonly object[] | undefined;
}

/** What LangChain calls a runnable with. */
interface Config {
  readonly signal?: AbortSignal;
}

/** Of a chat model: these answer the same with other options. */
const DERIVING = ["bindTools", "withConfig", "withStructuredOutput"] as const;

/**
 * A runnable of the same type whose every call runs under the policy, asking the first of the given ones, and going on to
 * the next when one is used up. The policy's targets are the runnables, in order; a policy that lists none has their
 * names. The old ones stay as they are; their own retries (`maxRetries`) are off in the new one, and `withRetry` is refused.
 *
 * A chat model stays a chat model: callbacks see one run for a call, and what `bindTools`, `withConfig` and
 * `withStructuredOutput` make of it is under the policy, too. A stream may be tried again until its first content.
 *
 * ```js
 * const model = resilient([new ChatOpenAI({ model: "gpt-5" }), new ChatAnthropic({ model: "claude-5" })], "interactive");
 * await model.invoke("What is a retry budget?");
 * ```
 */
export function resilient<R extends object>(
  runnables: R | readonly R[],
  policy?: PolicyLike,
  options: ChainOptions = {},
): R {
  const all = [runnables].flat() as unknown as Runnable[];
  for (const [i, one] of all.entries()) refuseOther(`runnables[${i}]`, one);
  return armed(chainOf(all, nameOf, policy, options)) as unknown as R;
}

/**
 * For `createMiddleware` of `langchain`: an agent's model is asked under this policy, and its tools under that of
 * `tools`, if there is one.
 *
 * ```js
 * const agent = createAgent({ model, tools, middleware: [createMiddleware(middleware("llm", { tools: "tool" }))] });
 * ```
 */
export function middleware(policy?: PolicyLike, options: MiddlewareOptions = {}): AgentHooks {
  const { tools, fallbacks = [], ...rest } = options;
  const armedModels = new WeakMap<object, object>();
  const under = (model: object): object => {
    let made = armedModels.get(model);
    if (!made) {
      made = resilient([model, ...fallbacks], policy, rest);
      armedModels.set(model, made);
    }
    return made;
  };
  const { prices: _, ...calls } = rest;
  const owner = tools === undefined ? undefined : boundOf(tools).bind(calls);
  return {
    name: "reprieve",
    wrapModelCall: async (request, handler) =>
      handler({ ...request, model: under((request as { model: object }).model) }),
    ...(owner && { wrapToolCall: async (request, handler) => (await owner.call(() => handler(request))) as never }),
  };
}

/** What `createMiddleware` takes. */
export interface AgentHooks {
  name: string;
  wrapModelCall<Q, A>(request: Q, handler: (request: Q) => A | PromiseLike<A>): Promise<A>;
  wrapToolCall?<Q, A>(request: Q, handler: (request: Q) => A | PromiseLike<A>): Promise<A>;
}

/** The first of the chain, with its calls made by the chain. */
function armed(given: Chain<Runnable>): Runnable {
  const quieted = new Map(given.models.map((one) => [one, quiet(one)]));
  const chain = { ...given, of: (target: string) => quieted.get(given.of(target)) as Runnable };
  const [first] = given.models as [Runnable];
  const own = given.models.every(isChatModel) ? chatModel(chain) : anyRunnable(chain);
  const derived = Object.fromEntries(
    DERIVING.filter((name) => given.models.every((one) => typeof one[name] === "function")).map((name) => [
      name,
      (...how: unknown[]) =>
        armed({ ...given, ...rechained(given, (one) => (one[name] as Method).apply(one, how) as Runnable) }),
    ]),
  );
  const copy = Object.create(
    Object.getPrototypeOf(first),
    Object.getOwnPropertyDescriptors(quieted.get(first) as object),
  );
  for (const [name, value] of Object.entries({ ...own, ...derived, withRetry: refuseRetry })) {
    Object.defineProperty(copy, name, { value, writable: true, configurable: true });
  }
  return noted(copy as Runnable);
}

type Method = (...given: unknown[]) => unknown;
type ChatModel = Runnable & Record<"_generate" | "_streamResponseChunks" | "_streamIterator" | "_llmType", Method>;

/** The same chain of what is made of its runnables. */
function rechained(chain: Chain<Runnable>, make: (one: Runnable) => Runnable): Pick<Chain<Runnable>, "models" | "of"> {
  const made = new Map(chain.models.map((one) => [one, make(one)]));
  return { models: [...made.values()], of: (target) => made.get(chain.of(target)) as Runnable };
}

/** What LangChain's own machinery for chat models ends in. */
function chatModel(chain: Chain<Runnable>): Record<string, unknown> {
  const [first] = chain.models as [Runnable];
  const streams = chain.models.every((one) => one._streamResponseChunks !== rooted(one, "_streamResponseChunks"));
  return {
    _generate: (messages: unknown, config: Config, manager: unknown) => {
      const { bound, model } = asking(chain, config, messages);
      return bound.call((attempt) =>
        (model(attempt) as ChatModel)._generate(attempt.request, given(config, attempt), manager),
      );
    },
    ...(streams && {
      _streamResponseChunks: (messages: unknown, config: Config, manager: unknown) =>
        streamed(chain, config, messages, (one, asked, own) =>
          (one as ChatModel)._streamResponseChunks(asked, own, manager),
        ),
      // The general way, over the chunks; providers' own begin a stream by themselves.
      _streamChatModelEvents: rooted(first, "_streamChatModelEvents"),
    }),
  };
}

/** Every way into a runnable, as it is where only `invoke` and the stream are its own. */
function anyRunnable(chain: Chain<Runnable>): Record<string, unknown> {
  const [first] = chain.models as [Runnable];
  const general = ["batch", "stream", "transform", "streamEvents", "streamLog"].map((name) => [
    name,
    rooted(first, name),
  ]);
  return {
    ...Object.fromEntries(general.filter(([, method]) => method)),
    invoke: (input: unknown, config: Config = {}) => {
      const { bound, model } = asking(chain, config, input);
      return bound.call((attempt) => model(attempt).invoke(attempt.request, given(config, attempt)));
    },
    _streamIterator: (input: unknown, config: Config = {}) =>
      streamed(chain, config, input, (one, asked, own) => (one as ChatModel)._streamIterator(asked, own)),
  };
}

/** One call: the policy that counts what it uses, and the runnable for an attempt. */
function asking(
  chain: Chain<Runnable>,
  { signal }: Config,
  request: unknown,
): { bound: Bound; model(attempt: Attempt): Runnable } {
  let latest: Runnable | undefined;
  const bound = counted(chain, { request, signal, read: answerOf, model: () => latest && nameOf(latest) });
  const model = ({ target }: Attempt): Runnable => {
    latest = chain.of(target);
    return latest;
  };
  return { bound, model };
}

const given = (config: Config, { signal }: Attempt): object => ({ ...config, signal });

async function* streamed(
  chain: Chain<Runnable>,
  config: Config,
  request: unknown,
  open: (one: Runnable, asked: unknown, config: object) => unknown,
): AsyncGenerator<unknown> {
  const { bound, model } = asking(chain, config, request);
  const items = retryStream<Item>((attempt) => {
    const one = model(attempt);
    return itemsOf(open(one, attempt.request, given(config, attempt)) as AsyncIterable<unknown>, finishes(one));
  }, bound);
  for await (const { chunk } of items) if (chunk !== undefined) yield chunk;
}

/** Whether the model's last chunk says why it finishes. */
function finishes(one: Runnable): boolean {
  return isChatModel(one) && /openai|anthropic/.test(String((one as ChatModel)._llmType()));
}

function refuseOther(field: string, one: unknown): void {
  if (isRunnable(one)) return;
  const found = typeof one === "string" ? `the name ${one}` : typeof one;
  throw new ConfigError(field, found, "a chat model or another runnable of LangChain");
}
