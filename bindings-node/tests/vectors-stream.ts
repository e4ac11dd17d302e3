/** A stream of a vector: its sources say what the case wants. */
import { type Attempt, type Bound, Discard, type RetryStream, retryStream } from "../driver/index.js";

/** Every attempt by its number, and how to end it. */
export type Made = Map<number, { attempt: Attempt; resolve(value: unknown): void; reject(error: unknown): void }>;

/** What one attempt of a stream gives: items as a case says, and its end. */
class Source {
  private ask: ((result: IteratorResult<string> | Promise<never>) => void) | undefined;
  private left = 0;

  /** It has so many more items. */
  give(items: number): void {
    this.left += items;
    this.serve();
  }

  end(): void {
    this.ask?.({ done: true, value: undefined });
  }

  fail(error: unknown): void {
    this.ask?.(Promise.reject(error));
  }

  next(): Promise<IteratorResult<string>> {
    return new Promise((resolve) => {
      this.ask = resolve;
      this.serve();
    });
  }

  private serve(): void {
    const { ask } = this;
    if (!ask || this.left <= 0) return;
    this.left -= 1;
    this.ask = undefined;
    ask({ done: false, value: "item" });
  }
}

/** A stream whose sources, one for each attempt, say what a case wants; its consumer takes whatever comes. */
export class Streamed {
  /** Items that the consumer has had, since the last discard. */
  got = 0;
  private readonly sources = new Map<number, Source>();
  private readonly stream: RetryStream<unknown>;

  constructor(
    bound: Bound,
    private readonly made: Made,
  ) {
    this.stream = retryStream<unknown>((attempt) => {
      const source = new Source();
      this.sources.set(attempt.number, source);
      made.set(attempt.number, { attempt, resolve: () => source.end(), reject: (error) => source.fail(error) });
      return { [Symbol.asyncIterator]: () => source };
    }, bound);
    void this.consume();
  }

  /** The source of this attempt, else of the latest, has so many more items. */
  give(items: number, number = Math.max(...this.made.keys())): void {
    this.sources.get(number)?.give(items);
  }

  cancel(): void {
    this.stream.cancel();
  }

  private async consume(): Promise<void> {
    try {
      for await (const item of this.stream) this.got = item instanceof Discard ? 0 : this.got + 1;
    } catch {
      // How the call ends is asked of the machine.
    }
  }
}
