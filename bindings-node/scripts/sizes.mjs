/**
 * Prints what a browser loads of an app that imports `Policy` and `retry`, and what the bytes of the module are; fails where a limit is
 * passed.
 */
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

import { optimize, WASM } from "./run.mjs";
import { functions, sections } from "./wasm.mjs";

/** In bytes gzipped: what must not be passed, and what is wanted. */
const LIMITS = {
  "slim, JS and wasm": { limit: 108_500, goal: 60_000 },
  "with the module inlined": { limit: 106_700, goal: 80_000 },
  "the driver alone": { limit: 12_500, goal: 6_000 },
};

const gzipped = (bytes) => gzipSync(bytes, { level: 9 }).length;

/** These names of a built module, as an app's bundler takes them along; all of them where none is named. */
async function minified(file, ...names) {
  const taken = names.length > 0 ? `{ ${names.join(", ")} }` : "*";
  const { outputFiles } = await build({
    stdin: { contents: `export ${taken} from "${file}";`, resolveDir: WASM },
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    external: ["./reprieve.wasm"],
    write: false,
  });
  return outputFiles[0].contents;
}

const module = readFileSync(`${WASM}gen/engine.wasm`);
const slim = await minified("./dist/slim.js", "init", "Policy", "retry");
const inlined = await minified("./dist/index.js", "Policy", "retry");
const glue = await minified("./gen/engine_bg.js");
const all = await minified("./dist/slim.js");

const loaded = {
  "slim, JS and wasm": [slim.length + module.length, gzipped(slim) + gzipped(module)],
  "with the module inlined": [inlined.length, gzipped(inlined)],
  "the driver alone": [slim.length - glue.length, gzipped(slim) - gzipped(glue)],
  "the module": [module.length, gzipped(module)],
  "its glue": [glue.length, gzipped(glue)],
  "all that slim exports, without the module": [all.length, gzipped(all)],
};

print(
  ["loaded", "bytes", "gzipped", "limit", "goal"],
  Object.entries(loaded).map(([name, sizes]) => [name, ...sizes, LIMITS[name]?.limit ?? "", LIMITS[name]?.goal ?? ""]),
);
print(
  ["section of the module", "bytes", "gzipped"],
  sections(module).map(({ name, bytes }) => [name, bytes.length, gzipped(bytes)]),
);

// The same module with its names kept, to say whose code it is.
const named = `${WASM}gen/named.wasm`;
optimize(`${WASM}gen/engine_bg.wasm`, named, ["-g"]);
const groups = new Map();
for (const { name, size } of functions(readFileSync(named))) {
  const group = groupOf(name);
  groups.set(group, (groups.get(group) ?? 0) + size);
}
const heavy = [...groups].sort(([, a], [, b]) => b - a);
print(["code of", "bytes"], heavy.slice(0, 30));
console.log(`and ${heavy.length - 30} more: ${heavy.slice(30).reduce((sum, [, size]) => sum + size, 0)} bytes`);

const over = Object.entries(LIMITS).filter(([name, { limit }]) => loaded[name][1] > limit);
for (const [name, { limit }] of over) console.error(`${name}: ${loaded[name][1]} bytes gzipped, more than ${limit}`);
process.exitCode = over.length > 0 ? 1 : 0;

/** The module of the core, or the crate, that a function belongs to. */
function groupOf(name) {
  const plain = name.replaceAll(/\[[0-9a-f]+\]|::h[0-9a-f]{16}/g, "");
  const own = plain.match(/reprieve::\w+(::[a-z]\w*)?/)?.[0];
  if (/serde|erialize/.test(plain)) return own ? `serde, for ${own}` : "serde";
  return (
    own ??
    plain.match(/\b(core|alloc|std|dlmalloc|wasm_bindgen|compiler_builtins|zmij|itoa|memchr)(::\w+)?/)?.[0] ??
    plain
  );
}

function print(header, rows) {
  const lines = [header, ...rows].map((row) => row.map(String));
  const widths = header.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  for (const [first, ...rest] of lines) {
    console.log([first.padEnd(widths[0]), ...rest.map((cell, i) => cell.padStart(widths[i + 1]))].join("  "));
  }
  console.log();
}
