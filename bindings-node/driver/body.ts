/** Bodies of requests and responses: what can be sent again, and what is read of an answer that failed. */
import { ConfigError } from "./errors.js";
import { get } from "./reading.js";

/** Of an error's body so much is read: what an error says is short. */
const LONGEST_ERROR = 1_048_576;

/**
 * The request's body as something that can be sent as often as needed: a stream is read into memory, up to `most` bytes.
 * `undefined` where the request's own body will do. Throws `ConfigError` for a stream that is longer; `what` names the request.
 */
export async function resendable(
  input: unknown,
  init: RequestInit | undefined,
  most: number,
  what: string,
): Promise<unknown> {
  const given = init?.body ?? undefined;
  const body = given ?? get(input, "body");
  if (!isOnce(body)) return undefined;
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of partsOf(body)) {
    const bytes = typeof part === "string" ? new TextEncoder().encode(part) : (part as Uint8Array);
    size += bytes.byteLength;
    if (size > most) {
      throw new ConfigError(
        `the body of ${what}`,
        `one that can be sent once, of more than ${most} bytes,`,
        "text, bytes, a Blob or a form: pass one, raise maxBody, or send it through a fetch that is not wrapped",
      );
    }
    parts.push(bytes);
  }
  return joined(parts, size);
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
  return made;
}

/** A stream, or something iterated: nothing that a second attempt could read from its beginning. */
function isOnce(body: unknown): boolean {
  return Boolean(get(body, "getReader") || get(body, Symbol.asyncIterator as never));
}

async function* partsOf(body: unknown): AsyncGenerator<unknown> {
  const reader = (body as ReadableStream<unknown>).getReader?.();
  if (!reader) return yield* body as AsyncIterable<unknown>;
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    // What comes after the limit is not read either.
    reader.cancel().catch(() => {});
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
