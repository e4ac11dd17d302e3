/** What the items of a stream say. The core reads them; here is only which ones it is asked about. */
import { engine } from "./load.js";
import { get } from "./reading.js";
import { usageIn } from "./usage.js";

/** What the core says of an item. */
export type Said = "held" | "content" | "end" | "content_end" | "error";

/** Something went wrong in a stream, and nobody threw an error of their own. */
export class StreamError extends Error {
  /** @internal The answer had begun under a status that said success. */
  readonly status = 200;

  constructor(
    message: string,
    /** `eof_without_finish`, `second_start`, `empty_answer`; of an error event its own says more. */
    readonly code: string | undefined,
    /** The event that said so. */
    readonly body?: unknown,
  ) {
    super(message);
    this.name = "StreamError";
  }
}

/** Reads an item. Bytes and text are content, unless they are empty. */
export function read(item: unknown): Said {
  if (typeof item === "string" || ArrayBuffer.isView(item)) return size(item) > 0 ? "content" : "held";
  const json = jsonOf(item);
  return json === undefined ? "content" : ((engine().streamItem?.(json) ?? "content") as Said);
}

/** An error that an item is, as something to throw. */
export function errorOf(item: unknown): StreamError {
  const error = get(item, "error") ?? get(get(item, "response"), "error") ?? item;
  const said = get(error, "message") ?? error;
  const message = typeof said === "string" ? said : "an error event";
  return new StreamError(`the stream broke off: ${message}`, undefined, item);
}

/** A type that begins an answer, if that is what the item is. */
export function startOf(item: unknown): string | undefined {
  const type = get(item, "type");
  return type === "message_start" || type === "response.created" ? type : undefined;
}

/** Whether an item amid the answer may be an error or a second start: worth asking the core. */
export function isTelling(item: unknown, start: string | undefined): boolean {
  if (typeof item !== "object" || item === null) return false;
  const { error, type } = item as { error?: unknown; type?: unknown };
  if (error != null || type === "error") return true;
  return type !== undefined && (type === start || type === "response.failed" || type === "response.incomplete");
}

/** Whether the last items, newest first, are the end of an answer that has one. */
export function isCut(last: readonly unknown[]): boolean {
  const [newest] = last;
  const json = jsonOf(newest);
  if (json === undefined || !engine().streamFinishes?.(json)) return false;
  return !last.some((item) => /end$/.test(read(item)));
}

/** What the items of an answer tell of it: its model, and what it used, the later word counting. */
export function answerIn(items: readonly unknown[]): { readonly model: unknown; readonly usage: unknown } {
  const holders = items.flatMap((item) => [item, get(item, "message"), get(item, "response")]);
  const model = holders.map((holder) => get(holder, "model")).find(Boolean);
  return { model, usage: Object.assign({}, ...holders.map(usageIn)) };
}

const size = (item: string | ArrayBufferView): number => (typeof item === "string" ? item.length : item.byteLength);

/** JSON of an object; of nothing else, and of none that has no JSON. */
function jsonOf(item: unknown): string | undefined {
  if (typeof item !== "object" || item === null || ArrayBuffer.isView(item)) return undefined;
  try {
    return JSON.stringify(item);
  } catch {
    return undefined;
  }
}
