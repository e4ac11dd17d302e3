/** Both SDKs, asked alike, and clients of them that are wrapped. */
import { gatewayForTests, QUICK, reprieveOn } from "../setup.mjs";

export const PRICES = {
  "gpt-5": { input: 1, output: 2 },
  "claude-5": { input: 3, output: 15, currency: "EUR" },
};

/** Both SDKs, asked alike. */
const asked = ({ OpenAI, Anthropic }) => ({
  openai: {
    Class: OpenAI,
    model: "gpt-5",
    base: (url) => `${url}/v1`,
    create: (client, body, options) => client.chat.completions.create({ model: "gpt-5", ...body }, options),
    helper: (client, body) => client.chat.completions.stream({ model: "gpt-5", ...body }).finalContent(),
    text: (answer) => answer.choices[0].message.content,
    delta: (chunk) => chunk.choices[0]?.delta.content,
  },
  anthropic: {
    Class: Anthropic,
    model: "claude-5",
    base: (url) => url,
    create: (client, body, options) => client.messages.create({ model: "claude-5", max_tokens: 50, ...body }, options),
    helper: (client, body) => client.messages.stream({ model: "claude-5", max_tokens: 50, ...body }).finalText(),
    text: (answer) => answer.content[0].text,
    delta: (event) => event.delta?.text,
  },
});

/** One engine, a gateway, and the SDKs. The packages are the current ones, or other versions. */
export async function placeOn(engine, { openai, anthropic } = {}) {
  const { default: OpenAI, AzureOpenAI } = openai ?? (await import("openai"));
  const { default: Anthropic } = anthropic ?? (await import("@anthropic-ai/sdk"));
  const reprieve = await reprieveOn(engine);
  const gateway = await gatewayForTests();
  let drills = 0;
  const sdks = Object.entries(asked({ OpenAI, Anthropic })).map(([name, sdk]) => {
    /** A client of its own drill, wrapped, and how to ask it. */
    const opened = (policy = QUICK, options = {}, clientOptions = {}) => {
      const drill = `${engine}-${name}-${++drills}`;
      const defaultHeaders = { "x-drill-id": drill };
      const baseURL = sdk.base(gateway.url);
      const base = new sdk.Class({ apiKey: "none", baseURL, defaultHeaders, ...clientOptions });
      const client = reprieve.wrap(base, policy, options);
      const ask = (content, { stream, ...given } = {}, of = client) =>
        sdk.create(of, { messages: [{ role: "user", content }], ...(stream && { stream }) }, given);
      return { base, client, ask, drill, count: () => gateway.count(drill) };
    };
    const read = async (stream) => {
      let text = "";
      for await (const chunk of stream) text += sdk.delta(chunk) ?? "";
      return text;
    };
    return { name, ...sdk, opened, read };
  });
  return { engine, reprieve, gateway, OpenAI, AzureOpenAI, Anthropic, sdks };
}
