/** A body that is a stream of a model's events: bytes that hold no content yet are held back, as items are. */
import { errorOf, type Said, StreamError } from "./frames.js";
import { engine } from "./load.js";

/** More than this is no beginning any more. */
const LONGEST = 65_536;
const BLANK_LINE = /\r?\n\r?\n/;
const BEGINNING = /^(data|event|id|retry|:)/;

/** Reads the events of one body. */
export class Events {
  /** What is wrong with it. */
  error: StreamError | undefined;
  private readonly _decoder = new TextDecoder();
  private _rest = "";
  private _size = 0;
  private _hasContent = false;
  private _isKnown = false;
  private _isFinished = false;

  /** `subscribed`: events may be long in coming, and a comment says that they will. */
  constructor(private readonly _subscribed: boolean) {}

  /** What the body says with these bytes. What nobody knows is content. */
  read(bytes: Uint8Array): Said {
    const text = this._decoder.decode(bytes, { stream: true });
    this._size += text.length;
    const frames = (this._rest + text).split(BLANK_LINE);
    this._rest = frames.pop() as string;
    for (const frame of frames) this._read(frame);
    if (this.error) return "error";
    const begins = BEGINNING.test(this._rest) || this._rest.length < 5;
    return this._hasContent || !begins || this._size > LONGEST ? "content" : "held";
  }

  /** What is wrong with a body that ends here. */
  end(): StreamError | undefined {
    if (this._isKnown ? !this._isFinished : !this._hasContent) {
      return new StreamError("the stream ended without its finish frame", "eof_without_finish");
    }
    return this._hasContent ? undefined : new StreamError("the answer has nothing in it", "empty_answer");
  }

  private _read(frame: string): void {
    const data = frame
      .split(/\r?\n/)
      .filter((line) => line.startsWith("data:"))
      .map((line) => line.slice(5).trim())
      .join("\n");
    if (data === "" && !this._subscribed) return;
    const said = engine().streamItem(data) as Said;
    const known = engine().streamFinishes(data);
    this._isKnown ||= known;
    this._isFinished ||= said.endsWith("end");
    if (said === "error") this.error ??= errorOf(parsed(data));
    // The word that ends a stream is no event of its own.
    else if (said.startsWith("content") || !(known || said === "end")) this._hasContent = true;
  }
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return data;
  }
}
