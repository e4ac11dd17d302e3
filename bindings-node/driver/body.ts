/** Bodies of requests and responses: what can be sent again, and what is read of an answer that failed. */
import { ConfigError } from "./errors.js";
import { get } from "./reading.js";

/** Of an error's body so much is read: what an error says is short. */
const LONGEST_ERROR = 1_048_576;

/** So much is kept of a body that is read as it is sent, in bytes, where nobody says otherwise. */
export const MOST_KEPT = 1_048_576;

const INSTEAD = "text, bytes, a Blob or a form: pass one";

/**
 * A body that is read as it is sent, read into memory, so that it can be sent as often as needed. Throws `ConfigError`
 * where it has more than `most` bytes, was read before, or holds what is no bytes; `what` names the request, and `others`
 * says what else may be done. The signal ends the reading.
 */
export async function kept(
  body: unknown,
  most: number,
  what: string,
  { others = "", signal }: { others?: string; signal?: AbortSignal } = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const refuse = (value: string): never => {
    throw new ConfigError(`the body of ${what}`, value, INSTEAD + others);
  };
  if (get(body, "locked") || get(body, "bodyUsed")) refuse("one that was read already, or is being read,");
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of partsOf(body, signal)) {
    const bytes = typeof part === "string" ? new TextEncoder().encode(part) : part;
    if (!ArrayBuffer.isView(bytes)) return refuse(`a stream of ${typeof part}s`);
    size += bytes.byteLength;
    if (size > most) refuse(`one that can be sent once, of more than ${most} bytes,`);
    parts.push(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }
  signal?.throwIfAborted();
  return joined(parts, size);
}

/** A stream, or something iterated: nothing that a second attempt could read from its beginning. */
export function isOnce(body: unknown): boolean {
  const iterated =
    get(body, Symbol.asyncIterator as never) || (get(body, Symbol.iterator as never) && get(body, "next"));
  return Boolean(iterated || get(body, "getReader"));
}

/** What a failed response says, as far as it can be had in so many milliseconds; the response can still be read. */
export async function textOf(response: Response, patience: number): Promise<string | undefined> {
  if (!response.body) return undefined;
  let copy: Response;
  try {
    copy = response.clone();
  } catch {
    return undefined;
  }
  const reader = (copy.body as ReadableStream<Uint8Array>).getReader();
  const timer = setTimeout(() => reader.cancel().catch(() => {}), patience);
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      parts.push(part.value);
      size += part.value.byteLength;
      if (size > LONGEST_ERROR) {
        reader.cancel().catch(() => {});
        return undefined;
      }
    }
    return new TextDecoder().decode(joined(parts, size));
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

/** Lets go of a response that nobody will read, so that its connection is free again. */
export function drop(response: Response): void {
  if (!response.bodyUsed) response.body?.cancel().catch(() => {});
}

/** The response with another body. */
export function withBody(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers, url, redirected, type } = response;
  const made = new Response(body, { status, statusText, headers });
  for (const [name, value] of Object.entries({ url, redirected, type, headers })) {
    Object.defineProperty(made, name, { value, enumerable: true });
  }
  // Of what is said here a copy knows nothing by itself.
  const clone = (): Response => withBody(response, Response.prototype.clone.call(made).body as typeof body);
  return Object.defineProperty(made, "clone", { value: clone });
}

async function* partsOf(body: unknown, signal: AbortSignal | undefined): AsyncGenerator<unknown> {
  const reader = (body as ReadableStream<unknown>).getReader?.();
  if (!reader) return yield* body as AsyncIterable<unknown>;
  const leave = (): void => void reader.cancel(signal?.reason).catch(() => {});
  signal?.addEventListener("abort", leave);
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    signal?.removeEventListener("abort", leave);
    // What comes after the limit is not read either.
    leave();
  }
}

function joined(parts: Uint8Array[], size: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.byteLength;
  }
  return all;
}
