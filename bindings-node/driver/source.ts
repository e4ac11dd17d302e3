/** Where items come from: what a stream's function answered, as something to pull from and to close. */
import { ConfigError } from "./errors.js";
import { get } from "./reading.js";

/** What may be answered with: an async iterable (an SDK's stream, a generator), a `ReadableStream`, a `Response`. */
export type Streamable<T> =
  | AsyncIterable<T>
  | Iterable<T>
  | ReadableStream<T>
  | { readonly body: ReadableStream<T> | null };

/** One attempt's items. */
export interface Source<T> {
  /** The server has answered: what fails now fails amid its answer. */
  readonly _answered: boolean;
  /** Of a client whose streams all have an end that says so. */
  readonly _isClient: boolean;
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
  throw new ConfigError(
    "fn",
    `an answer of ${what(answer)}`,
    "a stream: an async iterable, a ReadableStream, a Response",
  );
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
  readonly _answered = true;
  readonly _isClient = false;
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
  readonly _answered: boolean;
  readonly _isClient: boolean;
  private readonly _controller: AbortController | undefined;

  constructor(
    answer: object,
    private readonly _iterator: Iterator<T> | AsyncIterator<T>,
  ) {
    // The streams of SDKs keep the controller of their request; a generator may not even have sent one.
    this._controller = get(answer, "controller") as AbortController | undefined;
    this._isClient = this._answered = typeof this._controller?.abort === "function";
  }

  next(): PromiseLike<IteratorResult<T>> | IteratorResult<T> {
    return this._iterator.next();
  }

  _close(reason: unknown): void {
    try {
      // An iterator that waits for its next item hears of its end after that.
      if (this._isClient) this._controller?.abort(reason);
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
