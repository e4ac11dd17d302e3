/** What an attempt used, read from its result where clients keep it. Unknown stays unknown, never zero. */
import { first, type Path, paths } from "./reading.js";

// OpenAI chat; OpenAI responses, Anthropic and LangChain; Gemini; Bedrock; the AI SDK.
const INPUT = paths("prompt_tokens input_tokens promptTokenCount inputTokens inputTokens.total");
const OUTPUT = paths("completion_tokens output_tokens candidatesTokenCount outputTokens outputTokens.total");
const HOLDERS = paths("usage usageMetadata");
// Gemini counts what it thought beside what it said; the others count it in.
const THOUGHTS = paths("thoughtsTokenCount");
// Embeddings say how much they have read, and that this is all.
const TOTAL = paths("total_tokens totalTokenCount");

/** Where a result keeps its usage. */
export const usageIn = (result: unknown): unknown => first(result, HOLDERS, (found) => found);
/** A number of tokens, at the first of these places that has one. */
export const count = (usage: unknown, names: Path[]): number | undefined =>
  first(usage, names, (n) => (Number.isSafeInteger(n) && Number(n) >= 0 ? Number(n) : undefined));

function output(usage: unknown, read: number | undefined): number | undefined {
  const [said, thought] = [count(usage, OUTPUT), count(usage, THOUGHTS)];
  if ((said ?? thought) === undefined) return read !== undefined && count(usage, TOTAL) === read ? 0 : undefined;
  return (thought ?? 0) + (said ?? 0);
}

/** `input_tokens` and `output_tokens`, as far as the result says; `undefined` when it says nothing. */
export function usageOf(result: unknown): Record<string, unknown> | undefined {
  const usage = usageIn(result);
  const read = count(usage, INPUT);
  const written = output(usage, read);
  return (read ?? written) === undefined ? undefined : { input_tokens: read, output_tokens: written };
}
