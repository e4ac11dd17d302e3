/** A real Chromium: the system's, with a profile of its own that is thrown away. CHROMIUM names another one. */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromium } from "playwright-core";

const PLACES = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Longer than anything takes, however busy the machine. */
const PATIENCE_MS = 300_000;

/** Opens a browser; `open(url)` answers a page, with what its console complained about in `page.complaints`. */
export async function launch() {
  const executablePath = PLACES.find((path) => path && existsSync(path));
  if (!executablePath) throw new Error("there is no Chromium: `apt-get install chromium`, or say where with CHROMIUM=");
  const profile = await mkdtemp(join(tmpdir(), "reprieve-chromium-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath,
    headless: true,
    timeout: PATIENCE_MS,
    args: FLAGS,
    viewport: { width: 1280, height: 900 },
  });
  context.setDefaultTimeout(PATIENCE_MS);
  return {
    version: context.browser()?.version() ?? "",
    async open(url) {
      const page = await context.newPage();
      page.complaints = [];
      page.on("console", (said) => said.type() === "error" && page.complaints.push(said.text()));
      page.on("pageerror", (error) => page.complaints.push(String(error)));
      page.on("requestfailed", (request) => page.complaints.push(`${request.url()} failed`));
      await page.goto(url);
      return page;
    },
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}
