/** What the items of a stream say. The core reads them; here is only which ones it is asked about. */
import { branded, RetryError } from "./errors.js";
import { engine } from "./load.js";
import { get } from "./reading.js";
import { usageIn } from "./usage.js";

/** What the core says of an item. */
export type Said = "held" | "content" | "end" | "content_end" | "error";

/**
 * A stream failed, and nobody threw an error of their own: an error event under a status that said success, an answer
 * that was filtered or has nothing in it, an end without a finish frame. `event` is the event that said so, where there
 * is one; `code` is `eof_without_finish`, `second_start` or `empty_answer`, where there is none.
 */
export const StreamError = /* @__PURE__ */ branded(
  "StreamError",
  class extends RetryError {
    /** @internal The answer had begun under a status that said success. */
    readonly status = 200;
    /** @internal The event, where the body of an answer is looked for. */
    readonly body: unknown;

    constructor(
      message: string,
      readonly code?: string,
      readonly event?: unknown,
    ) {
      super(message);
      this.body = event;
    }
  },
);
export type StreamError = InstanceType<typeof StreamError>;

/** So many of the last items are read: the finish frame, and what may come after it. */
const LAST = 8;
const STARTS = ["message_start", "response.created"];
const PINGS = ["ping", "keepalive"];

/** Reads an item. Bytes and text are content, unless they are empty. */
export function read(item: unknown): Said {
  if (item == null) return "held";
  if (typeof item === "string") return item ? "content" : "held";
  if (ArrayBuffer.isView(item)) return item.byteLength > 0 ? "content" : "held";
  const json = jsonOf(item);
  return json === undefined ? "content" : (engine().streamItem(json) as Said);
}

/** An error that an item is, as something to throw. */
export function errorOf(item: unknown): StreamError {
  const error = get(item, "error") ?? get(get(item, "response"), "error") ?? item;
  const said = typeof error === "string" ? error : get(error, "message");
  const words = typeof said === "string" ? said : "the stream says that its answer failed";
  return new StreamError(`an error amid the stream: ${words}`, undefined, item);
}

/** Whether an item amid the answer is worth a look. Asked for every item. */
export function isTelling(item: unknown): boolean {
  if (typeof item !== "object" || item === null) return false;
  const { error, type } = item as { error?: unknown; type?: unknown };
  if (error != null) return true;
  switch (type) {
    case undefined:
      return false;
    case "error":
    case "response.failed":
    case "message_start":
    case "response.created":
    case "ping":
    case "keepalive":
      return true;
    default:
      return false;
  }
}

/** Whether the item keeps a connection alive, and is no data. */
export function isPing(item: unknown): boolean {
  return PINGS.includes(get(item, "type") as string);
}

/** What is wrong with an item amid an answer that began with `opening`. */
export function faultIn(item: unknown, opening: readonly unknown[]): StreamError | undefined {
  const type = get(item, "type") as string;
  if (STARTS.includes(type) && opening.some((one) => get(one, "type") === type)) {
    return new StreamError("the stream started again amid its answer", "second_start", item);
  }
  return read(item) === "error" ? errorOf(item) : undefined;
}

/** Whether what follows the last content says that the answer is whole; an error where it says that it failed. */
export function isFinished(items: readonly unknown[]): boolean | StreamError {
  let finished = false;
  for (const item of items.slice(-LAST).reverse()) {
    const said = read(item);
    if (said === "error") return errorOf(item);
    finished ||= said.endsWith("end");
    if (said.startsWith("content")) break;
  }
  return finished;
}

/** Whether bytes end in the event that ends a stream of events. */
export function isLastEvent(bytes: unknown): boolean {
  if (!ArrayBuffer.isView(bytes)) return false;
  const text = new TextDecoder().decode(bytes);
  const [, event] = /.*\ndata: ?(.*)\s*$/s.exec(`\n${text}`) ?? [];
  return event !== undefined && engine().streamItem(event).endsWith("end");
}

/** What is wrong with an answer that ends after these items. `known`: of a client whose streams all have an end. */
export function faultAtEnd(items: readonly unknown[], hasContent: boolean, known: boolean): StreamError | undefined {
  const finished = isFinished(items);
  if (typeof finished === "object") return finished;
  if (!finished && (known || items.slice(-LAST).some(finishes))) {
    return new StreamError("the stream ended without its finish frame", "eof_without_finish");
  }
  return finished && !hasContent ? new StreamError("the answer has nothing in it", "empty_answer") : undefined;
}

/** What the first and last items of an answer tell of it: its model, and what it used, the later word counting. */
export function answerIn(items: readonly unknown[]): { readonly model: unknown; readonly usage: unknown } {
  const holders = [items[0], ...items.slice(-LAST)].flatMap((item) => [
    item,
    get(item, "message"),
    get(item, "response"),
  ]);
  const model = holders.map((holder) => get(holder, "model")).find(Boolean);
  return { model, usage: Object.assign({}, ...holders.map(usageIn)) };
}

function finishes(item: unknown): boolean {
  const json = jsonOf(item);
  return json !== undefined && engine().streamFinishes(json);
}

/** JSON of an object; of nothing else, and of none that has no JSON. */
function jsonOf(item: unknown): string | undefined {
  if (typeof item !== "object" || item === null || ArrayBuffer.isView(item)) return undefined;
  try {
    return JSON.stringify(item);
  } catch {
    return undefined;
  }
}
