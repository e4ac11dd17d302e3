/** Where items come from: what a stream's function answered, as something to pull from and to close. */
import { ConfigError } from "./errors.js";
import { get } from "./reading.js";

/** What may be answered with: an async iterable (an SDK's stream, a generator), a `ReadableStream`, a `Response`. */
export type Streamable<T> = AsyncIterable<T> | Iterable<T> | ReadableStream<T> | { readonly body: ReadableStream<T> | null };

/** One attempt's items. */
export interface Source<T> {
  next(): PromiseLike<IteratorResult<T>> | IteratorResult<T>;
  /** Lets go of what is behind it, without waiting for that. */
  _close(reason: unknown): void;
}

/** Opens what was answered; throws what to do where it is no stream. */
export function sourceOf<T>(answer: unknown): Source<T> {
  const body = get(answer, "getReader") ? answer : get(answer, "body");
  if (get(body, "getReader")) return new Read(body as ReadableStream<T>);
  for (const way of [Symbol.asyncIterator, Symbol.iterator] as const) {
    const open = typeof answer === "object" && answer ? (answer as { [way]?: () => Iterator<T> })[way] : undefined;
    if (typeof open === "function") return new Iterated(answer as object, open.call(answer));
  }
  if (answer && body === null) return new Iterated({}, [][Symbol.iterator]());
  throw new ConfigError("fn", `an answer of ${what(answer)}`, "a stream: an async iterable, a ReadableStream, a Response");
}

/** Closes what was answered too late to be opened. */
export function closeUnopened(answer: unknown, reason: unknown): void {
  try {
    sourceOf(answer)._close(reason);
  } catch {
    // No stream, or one that is used already.
  }
}

class Read<T> implements Source<T> {
  private readonly _reader: ReadableStreamDefaultReader<T>;

  constructor(stream: ReadableStream<T>) {
    this._reader = stream.getReader();
  }

  next(): Promise<IteratorResult<T>> {
    return this._reader.read() as Promise<IteratorResult<T>>;
  }

  _close(reason: unknown): void {
    this._reader.cancel(reason).catch(ignore);
  }
}

class Iterated<T> implements Source<T> {
  constructor(
    private readonly _answer: object,
    private readonly _iterator: Iterator<T> | AsyncIterator<T>,
  ) {}

  next(): PromiseLike<IteratorResult<T>> | IteratorResult<T> {
    return this._iterator.next();
  }

  _close(reason: unknown): void {
    try {
      // A generator that waits for its next item hears of nothing before that; SDKs' streams keep a controller.
      const controller = get(this._answer, "controller") as AbortController | undefined;
      if (typeof controller?.abort === "function") controller.abort(reason);
      const closed: unknown = this._iterator.return?.();
      if (typeof get(closed, "then") === "function") (closed as Promise<unknown>).then(undefined, ignore);
    } catch {
      // It is let go of all the same.
    }
  }
}

function ignore(): void {}

function what(answer: unknown): string {
  return answer === null || typeof answer !== "object" ? String(answer) : (answer.constructor?.name ?? "object");
}
