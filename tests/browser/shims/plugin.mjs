/** Lets the runners of the vectors, which were written for Node, be bundled for a page. */
import { TESTS } from "../../js/paths.mjs";

const SHIMS = {
  "node:test": "test.mjs",
  "node:assert/strict": "assert.mjs",
  "node:fs": "fs.mjs",
  "./engines.js": "engines.mjs",
};

export const forPages = {
  name: "for pages",
  setup(build) {
    build.onResolve({ filter: /^(node:(test|assert\/strict|fs)|\.\/engines\.js)$/ }, ({ path }) => ({
      path: `${TESTS}browser/shims/${SHIMS[path]}`,
    }));
  },
};
