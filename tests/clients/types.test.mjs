/** The compiler takes wrapped clients, streams and requests for what they were. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

import { ROOT } from "../js/paths.mjs";

test("types are kept", () => {
  const tsc = `${ROOT}bindings-node/node_modules/.bin/tsc`;
  const { status, stdout } = spawnSync(tsc, ["-p", `${ROOT}tests/clients/tsconfig.json`], { encoding: "utf8" });
  assert.equal(stdout, "");
  assert.equal(status, 0);
});
