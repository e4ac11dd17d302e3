/** What an attempt used, read from its result where clients keep it. Unknown stays unknown, never zero. */
import { first, type Path, paths } from "./reading.js";

// OpenAI chat; OpenAI responses and Anthropic; Gemini; Bedrock and the AI SDK.
const INPUT = paths("prompt_tokens input_tokens promptTokenCount inputTokens");
const OUTPUT = paths("completion_tokens output_tokens candidatesTokenCount outputTokens");
const HOLDERS = paths("usage usageMetadata");
// Gemini counts what it thought beside what it said; the others count it in.
const THOUGHTS = paths("thoughtsTokenCount");
// What came from a cache: within the tokens read, or beside them, where what went into one is counted as well.
const CACHED_WITHIN = paths(
  "prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens cachedContentTokenCount",
);
const CACHED_BESIDE = paths("cache_read_input_tokens cacheReadInputTokens");
const KEPT = paths("cache_creation_input_tokens cacheWriteInputTokens");

const usageIn = (result: unknown): unknown => first(result, HOLDERS, (found) => found);
const count = (usage: unknown, names: Path[]): number | undefined =>
  first(usage, names, (n) => (Number.isSafeInteger(n) && Number(n) >= 0 ? Number(n) : undefined));

function output(usage: unknown): number | undefined {
  const [said, thought] = [count(usage, OUTPUT), count(usage, THOUGHTS)];
  return thought === undefined ? said : thought + (said ?? 0);
}

/** `input_tokens` and `output_tokens`, as far as the result says; `undefined` when it says nothing. */
export function usageOf(result: unknown): Record<string, unknown> | undefined {
  const usage = usageIn(result);
  const [read, written] = [count(usage, INPUT), output(usage)];
  return (read ?? written) === undefined ? undefined : { input_tokens: read, output_tokens: written };
}

/** Tokens read, written, read from a cache and kept in one, each in one place; nothing where a main number is unknown. */
export function billedOf(result: unknown): [number, number, number, number] | undefined {
  const usage = usageIn(result);
  const [read, written] = [count(usage, INPUT), output(usage)];
  if (read === undefined || written === undefined) return undefined;
  const within = count(usage, CACHED_WITHIN) ?? 0;
  const beside = count(usage, CACHED_BESIDE) ?? 0;
  return [Math.max(0, read - within), written, within + beside, count(usage, KEPT) ?? 0];
}
