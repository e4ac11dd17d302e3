/** What an attempt used, read from its result where clients keep it. Unknown stays unknown, never zero. */
import { first, type Path, paths } from "./reading.js";

// OpenAI chat; OpenAI responses and Anthropic; Gemini; Bedrock and the AI SDK.
const INPUT = paths("prompt_tokens input_tokens promptTokenCount inputTokens");
const OUTPUT = paths("completion_tokens output_tokens candidatesTokenCount outputTokens");
const HOLDERS = paths("usage usageMetadata");

/** `input_tokens` and `output_tokens`, as far as the result says; `undefined` when it says nothing. */
export function usageOf(result: unknown): Record<string, unknown> | undefined {
  const usage = first(result, HOLDERS, (found) => found);
  const count = (names: Path[]): number | undefined =>
    first(usage, names, (n) => (Number.isSafeInteger(n) && Number(n) >= 0 ? Number(n) : undefined));
  const [input, output] = [count(INPUT), count(OUTPUT)];
  return (input ?? output) === undefined ? undefined : { input_tokens: input, output_tokens: output };
}
