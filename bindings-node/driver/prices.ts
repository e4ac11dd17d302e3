/** What tokens cost: the user's own table, by the name of a model. */
import { ConfigError } from "./errors.js";
import { get, type Path, paths } from "./reading.js";
import type { Prices } from "./types.js";
import { count, usageIn, usageOf } from "./usage.js";

// What came from a cache, or went into one: within the tokens read, or beside them.
const CACHED_WITHIN = /* @__PURE__ */ paths(
  "prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens cachedContentTokenCount inputTokens.cacheRead " +
    "input_token_details.cache_read",
);
const KEPT_WITHIN = /* @__PURE__ */ paths("inputTokens.cacheWrite input_token_details.cache_creation");
const CACHED_BESIDE = /* @__PURE__ */ paths("cache_read_input_tokens cacheReadInputTokens");
const KEPT_BESIDE = /* @__PURE__ */ paths("cache_creation_input_tokens cacheWriteInputTokens");

const NUMBERS = ["input", "output", "cachedInput", "cacheWrite"] as const;

/** The table as it was given, checked. Throws `ConfigError` naming the model and the field. */
export function checkedPrices(table: Prices): Prices {
  if (Object(table) !== table)
    throw new ConfigError("prices", String(table), 'a table: { "gpt-5": { input: 1.25, output: 10 } }');
  for (const [model, row] of Object.entries(table)) {
    for (const [name, value] of Object.entries(row ?? {})) {
      const isNumber = NUMBERS.some((number) => number === name);
      const fine = isNumber
        ? Number.isFinite(value) && Number(value) >= 0
        : name === "currency" && typeof value === "string";
      const allowed = isNumber ? "a number from 0 up, for a million tokens" : `${NUMBERS}, and currency as text`;
      if (value !== undefined && !fine) throw new ConfigError(`prices.${model}.${name}`, String(value), allowed);
    }
    for (const name of ["input", "output"] as const) {
      if (row?.[name] === undefined)
        throw new ConfigError(`prices.${model}.${name}`, "nothing", "what a million tokens cost");
    }
  }
  return table;
}

/** Tokens and cost of an answer, as far as they are known. `asked` is the model that the request named. */
export function pricedUsage(
  answer: unknown,
  prices: Prices | undefined,
  asked: unknown,
): Record<string, unknown> | undefined {
  const usage = usageOf(answer);
  const tokens = usage && prices && billedOf(answer, usage);
  const model = [asked, get(answer, "model")].find(
    (name) => typeof name === "string" && Object.hasOwn(prices ?? {}, name),
  );
  const rate = prices?.[model as string];
  if (!tokens || !rate) return usage;
  const { input, output, cachedInput = input, cacheWrite = input, currency = "USD" } = rate;
  const [read, written, cached, kept] = tokens;
  return {
    ...usage,
    cost: (read * input + written * output + cached * cachedInput + kept * cacheWrite) / 1e6,
    currency,
  };
}

/** Tokens read, written, read from a cache and kept in one, each in one place; nothing where a main number is unknown. */
function billedOf(answer: unknown, { input_tokens: read, output_tokens: written }: Record<string, unknown>) {
  if (read === undefined || written === undefined) return undefined;
  const usage = usageIn(answer);
  const of = (names: Path[]): number => count(usage, names) ?? 0;
  const [cached, kept] = [of(CACHED_WITHIN), of(KEPT_WITHIN)];
  const fresh = Math.max(0, Number(read) - cached - kept);
  return [fresh, Number(written), cached + of(CACHED_BESIDE), kept + of(KEPT_BESIDE)] as const;
}
