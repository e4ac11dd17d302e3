/** Bodies of requests and responses: what can be sent again, and what is read of an answer that failed. */
import { ConfigError } from "./errors.js";
import { get } from "./reading.js";
import { sourceOf } from "./source.js";

/** Of an error's body so much is read: what an error says is short. */
const LONGEST_ERROR = 1_048_576;

/** So much is kept of a body that is read as it is sent, in bytes, where nobody says otherwise. */
export const MOST_KEPT = 1_048_576;

const INSTEAD = "text, bytes, a Blob or a form: pass one";

/**
 * A body that is read as it is sent, read into memory, so that it can be sent as often as needed. Throws `ConfigError`
 * where it has more than `most` bytes, was read before, or holds what is no bytes; `what` names the request, and `others`
 * says what else may be done. The signal ends the reading, and then nothing can be sent any more.
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
  try {
    for await (const part of partsOf(body, signal)) {
      const bytes = typeof part === "string" ? new TextEncoder().encode(part) : part;
      if (!ArrayBuffer.isView(bytes)) return refuse(`a stream of ${typeof part}s`);
      size += bytes.byteLength;
      if (size > most) refuse(`one that can be sent once, of more than ${most} bytes,`);
      parts.push(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    }
  } catch (error) {
    // Only a later attempt hears of this: the one that was cut has ended with what cut it.
    if (signal?.aborted) refuse("one that can be sent once, and was not read to its end when an attempt ended,");
    throw error;
  }
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

/** The response with another body, made by the class of its own `fetch`. */
export function withBody(response: Response, body: ReadableStream<Uint8Array>): Response {
  const { status, statusText, headers } = response;
  const Made = classOf(response);
  return alike(response, new Made(body, { status, statusText, headers }));
}

/**
 * Says the same as the response, and so do copies of it; of its address one that was made here knows nothing by itself.
 * The headers are the very same ones, by which a copy is known.
 */
export function alike(response: Response, made: Response): Response {
  const { url, redirected, type, headers } = response;
  for (const [name, value] of Object.entries({ url, redirected, type, headers })) {
    Object.defineProperty(made, name, { value, enumerable: true, configurable: true });
  }
  const clone = (): Response => alike(response, classOf(made).prototype.clone.call(made));
  return Object.defineProperty(made, "clone", { value: clone, configurable: true });
}

/** The class of responses that this one is of, or of which its own is derived: the platform's, undici's, another's. */
function classOf(response: Response): typeof Response {
  let found = Response;
  for (let at = Object.getPrototypeOf(response); at; at = Object.getPrototypeOf(at)) {
    if (Object.hasOwn(at, "clone")) found = at.constructor;
  }
  return found;
}

/**
 * The stream, which also takes a reader that brings a buffer of its own, as a body from the network does. A stream of bytes
 * takes its time over each part: one is made for who asks.
 */
export function forBuffers(stream: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const getReader = (how?: { mode?: "byob" }): unknown => {
    const reader = ReadableStream.prototype.getReader.call(stream) as ReadableStreamDefaultReader<Uint8Array>;
    return how?.mode === "byob" ? new ReadableStream(bytesFrom(reader), { highWaterMark: 0 }).getReader(how) : reader;
  };
  return Object.defineProperty(stream, "getReader", { value: getReader, configurable: true });
}

function bytesFrom(reader: ReadableStreamDefaultReader<Uint8Array>): UnderlyingByteSource {
  return {
    type: "bytes",
    async pull(controller) {
      let part = await reader.read();
      while (part.value?.byteLength === 0) part = await reader.read();
      // Copied, because what goes into a stream of bytes can be read nowhere else any more.
      if (!part.done) return controller.enqueue(new Uint8Array(part.value));
      controller.close();
      controller.byobRequest?.respond(0);
    },
    cancel: (reason) => reader.cancel(reason),
  };
}

/** The parts of a body. Once the signal aborts nothing of it is waited for, nor read. */
async function* partsOf(body: unknown, signal: AbortSignal | undefined): AsyncGenerator<unknown> {
  const source = sourceOf<unknown>(body);
  let leave = (): void => {};
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(signal?.reason);
  });
  left.catch(() => {});
  signal?.addEventListener("abort", leave);
  try {
    for (;;) {
      const part = await Promise.race([source.next(), left]);
      if (part.done) return;
      yield part.value;
    }
  } finally {
    signal?.removeEventListener("abort", leave);
    // What comes after the limit is not read either.
    source._close(signal?.reason);
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
