/**
 * The drill in a browser: a page in Chromium that calls the fault gateway with `fetch` and with the `openai` client.
 *
 *     node tests/drill/browser/drill.mjs [--only ID ...] [--scenarios FILE] [--gateway FILE] [--out DIR]
 *
 * Needs `npm ci` in `tests`, `make wasm gateway` and a Chromium. Prints a table, a row for each step of a scenario with
 * both clients in it; writes `browser-receipts.jsonl`, `browser.json` and a picture of the page, `browser.png`. Exits with
 * 1 if anything differs from `scenarios.json`.
 */
import { launch } from "../../browser/chromium.mjs";
import { serve } from "../../browser/server.mjs";
import { bundle } from "../../js/bundle.mjs";
import { deadline } from "../../js/deadline.mjs";
import { TESTS } from "../../js/paths.mjs";
import { command, finish } from "../js/command.mjs";
import { openGateway } from "../node/places.mjs";

const options = command();
deadline(600);
const page = await bundle("drill", ["tests/drill/browser/page.mjs"]);
const server = await serve({ "/js/drill/": page, "/drill/": `${TESTS}drill/browser/` });
const gateway = await openGateway(options.gateway);
const browser = await launch();
try {
  const tab = await browser.open(`${server.url}/drill/page.html`);
  const { scenarios, promptVersion } = options;
  const played = await tab.evaluate((given) => globalThis.play(given), {
    scenarios,
    promptVersion,
    gateway: gateway.url,
  });
  await tab.screenshot({ path: `${options.out}/browser.png`, fullPage: true });
  finish(options, "browser", "Chromium", await tab.evaluate(() => globalThis.names), played);
} finally {
  await browser.close();
  gateway.close();
  server.close();
}
