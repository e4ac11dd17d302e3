/** Wrapped clients of `openai` and `@anthropic-ai/sdk` against the gateway, over one engine. */
import { describe } from "node:test";

import { answers } from "./answers.mjs";
import { costs } from "./costs.mjs";
import { ends } from "./ends.mjs";
import { own } from "./own.mjs";
import { placeOn } from "./sdks.mjs";
import { streams } from "./streams.mjs";

/** The packages are the current ones, or other versions. */
export async function suite(engine, packages) {
  const place = await placeOn(engine, packages);
  for (const sdk of place.sdks) {
    describe(`${sdk.name} over ${engine}`, () => {
      for (const part of [answers, costs, ends, streams]) part(place, sdk);
    });
  }
  own(place);
}
