/** Who imports `retry` alone gets nothing of streams and requests: bundles are small where they are not needed. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { build } from "esbuild";

import { ROOT } from "../js/paths.mjs";

const APART = ["body", "context", "events", "feed", "fetch", "frames", "pull", "source", "stream"];

/** The driver's modules of which something is in a bundle of these names. */
async function modulesOf(names) {
  const stdin = {
    contents: `export { ${names} } from "./driver/index.js"`,
    resolveDir: `${ROOT}bindings-node`,
    loader: "ts",
  };
  const { metafile } = await build({ stdin, bundle: true, minify: true, format: "esm", metafile: true, write: false });
  const [{ inputs }] = Object.values(metafile.outputs);
  const kept = Object.entries(inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  return kept.map(([path]) => path.match(/(\w+)\.ts$/)?.[1]);
}

test("streams and requests are apart", async () => {
  const alone = await modulesOf("retry, Policy");
  assert.deepEqual(
    alone.filter((name) => APART.includes(name)),
    [],
  );
  assert.ok(alone.includes("session"));
  const streams = await modulesOf("retryStream");
  assert.ok(streams.includes("feed") && !streams.includes("fetch"));
});
