/** What an attempt used, read from its result where clients keep it. Unknown stays unknown, never zero. */
import { first, type Path, paths } from "./reading.js";

// OpenAI chat; OpenAI responses, Anthropic and LangChain; Gemini; Bedrock; the AI SDK.
const INPUT = paths("prompt_tokens input_tokens promptTokenCount inputTokens inputTokens.total");
const OUTPUT = paths("completion_tokens output_tokens candidatesTokenCount outputTokens outputTokens.total");
const HOLDERS = paths("usage usageMetadata");
// Gemini counts what it thought beside what it said; the others count it in.
const THOUGHTS = paths("thoughtsTokenCount");
// What came from a cache, or went into one: within the tokens read, or beside them.
const CACHED_WITHIN = paths(
  "prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens cachedContentTokenCount inputTokens.cacheRead " +
    "input_token_details.cache_read",
);
const KEPT_WITHIN = paths("inputTokens.cacheWrite input_token_details.cache_creation");
const CACHED_BESIDE = paths("cache_read_input_tokens cacheReadInputTokens");
const KEPT_BESIDE = paths("cache_creation_input_tokens cacheWriteInputTokens");

/** Where a result keeps its usage. */
export const usageIn = (result: unknown): unknown => first(result, HOLDERS, (found) => found);
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
  const of = (names: Path[]): number => count(usage, names) ?? 0;
  const [cached, kept] = [of(CACHED_WITHIN), of(KEPT_WITHIN)];
  return [Math.max(0, read - cached - kept), written, cached + of(CACHED_BESIDE), kept + of(KEPT_BESIDE)];
}
