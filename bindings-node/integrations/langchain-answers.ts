/** What LangChain's answers and chunks say, in words that the core reads. */

/** What an answer used, and who gave it. */
export interface Answer {
  readonly model: unknown;
  readonly usage: unknown;
}

type Counts = { readonly [name: string]: number | Counts | undefined };

interface Message {
  readonly content?: unknown;
  readonly tool_call_chunks?: readonly unknown[];
  readonly additional_kwargs?: Record<string, unknown>;
  readonly response_metadata?: Record<string, unknown>;
  readonly usage_metadata?: Counts;
}

/** What a result or a message tells of itself. What a stream has told is told already. */
export function answerOf(answer: unknown): Answer {
  const [first] = (answer as { generations?: unknown[] } | undefined)?.generations ?? [answer];
  const message = messageOf(first);
  if (!message) return answer as Answer;
  return { model: message.response_metadata?.model_name, usage: message.usage_metadata };
}

/** A chunk, with what it says. It is the chunk that the consumer gets; as JSON it is what it says. */
export class Item {
  readonly usage?: unknown;
  readonly model?: unknown;

  constructor(
    readonly chunk: unknown,
    private readonly says: object,
  ) {
    Object.assign(this, says);
  }

  toJSON(): object {
    return this.says;
  }
}

const END = { choices: [{ delta: {}, finish_reason: "stop" }] };
/** Of no known shape, and thus content. */
const OTHER = {};

/**
 * The chunks of a stream as items. `finishes`: its model says why it finishes, so that a stream without that was cut;
 * of another one the end is the end. Usage is added up: each chunk tells what it adds.
 */
export async function* itemsOf(chunks: AsyncIterable<unknown>, finishes: boolean): AsyncGenerator<Item> {
  let used: Counts | undefined;
  let end: object | undefined;
  for await (const chunk of chunks) {
    const message = messageOf(chunk);
    if (message) {
      end = END;
      used = sum(used, message.usage_metadata);
      const { model_name: model } = message.response_metadata ?? {};
      yield new Item(chunk, { choices: [choiceOf(chunk, message)], ...(used && { usage: used }), model });
    } else if (typeof chunk === "string") {
      // A parser's text may be empty to its end; before that it says nothing.
      if (chunk || !end) end = chunk ? END : OTHER;
      yield new Item(chunk, { choices: [{ delta: { content: chunk } }] });
    } else {
      yield new Item(chunk, OTHER);
    }
  }
  if (end && !finishes) yield new Item(undefined, { ...end, ...(used && { usage: used }) });
}

/** The message of a chunk, which may be one itself. */
function messageOf(chunk: unknown): Message | undefined {
  const message = (chunk as { message?: unknown } | undefined)?.message ?? chunk;
  return Object(message) === message && "response_metadata" in (message as object) ? (message as Message) : undefined;
}

function choiceOf(chunk: unknown, message: Message): object {
  const { content, tool_call_chunks: calls, additional_kwargs: more = {}, response_metadata: told = {} } = message;
  const { generationInfo: info } = chunk as { generationInfo?: Record<string, unknown> };
  const { reasoning_content: reasoning, refusal, function_call, tool_calls } = more;
  const parts = Array.isArray(content) ? content.filter(carries) : content;
  return {
    delta: { content: parts, tool_calls: calls?.length ? calls : tool_calls, reasoning, refusal, function_call },
    finish_reason: info?.finish_reason ?? told.finish_reason ?? told.stop_reason ?? more.stop_reason ?? told.status,
  };
}

/** Whether a block has more than a name. */
function carries(block: unknown): boolean {
  if (typeof block !== "object" || block === null) return Boolean(block);
  return Object.entries(block).some(([name, value]) => {
    const isName = ["type", "id", "index", "name"].includes(name);
    return !isName && value !== "" && value != null && Object.keys(Object(value)).length > 0;
  });
}

function sum(one: Counts | undefined, other: Counts | undefined): Counts | undefined {
  if (!one || !other) return one ?? other;
  const out: Record<string, number | Counts | undefined> = { ...one };
  for (const [name, value] of Object.entries(other)) {
    const before = out[name];
    if (typeof value === "number") out[name] = value + (typeof before === "number" ? before : 0);
    else if (value) out[name] = sum(before as Counts | undefined, value);
  }
  return out;
}
