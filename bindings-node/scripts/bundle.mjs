/** Bundles entries with the driver: as ES modules that share chunks, or as CommonJS modules that share `driver.js`. */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, relative } from "node:path";

import { build } from "esbuild";

import { NODE, ROOT, run } from "./run.mjs";

export const { version: VERSION } = JSON.parse(readFileSync(`${NODE}package.json`, "utf8"));

const COMMON = {
  absWorkingDir: ROOT,
  bundle: true,
  target: "es2022",
  define: { VERSION: JSON.stringify(VERSION) },
  metafile: true,
  logLevel: "warning",
  legalComments: "none",
};

/** What the driver keeps to itself is renamed, the same in every bundle. */
const MANGLED = { mangleProps: /^_[a-z]/, mangleCache: {} };

/** One name of an installed package, as a module of its own. */
export async function vendored(name, from, outfile) {
  const stdin = { contents: `export { ${name} } from "${from}";`, resolveDir: NODE };
  await build({ ...COMMON, stdin, outfile, format: "esm", minify: true });
}

/** ES modules for browsers and edge runtimes, minified: `entries` is a list of files. */
export async function modules(outdir, entries) {
  const external = ["./reprieve.wasm", "./reprieve.wasm?module", "node:*"];
  return build({
    ...COMMON,
    ...MANGLED,
    entryPoints: entries,
    outdir,
    external,
    format: "esm",
    minify: true,
    splitting: true,
  });
}

/**
 * CommonJS for Node, and beside it ES modules that are faces of the same: however it is imported, a process has one
 * driver. `entries` are files; `apart` are entries that others read when they need them.
 */
export async function commonJs(outdir, entries, apart = []) {
  const cjs = `${outdir}cjs/`;
  const options = { ...COMMON, outdir: cjs, platform: "node", format: "cjs" };
  const shared = {
    stdin: { contents: await sharedDriver(), resolveDir: NODE, sourcefile: "driver.ts", loader: "ts" },
    outfile: `${cjs}driver.js`,
    outdir: undefined,
  };
  await build({ ...options, ...shared });
  const built = await build({ ...options, entryPoints: entries, plugins: [await withSharedDriver(apart)] });
  if (apart.length > 0)
    await build({ ...options, entryPoints: apart.map(({ file, name }) => ({ in: file, out: name })) });
  writeFileSync(`${cjs}package.json`, '{ "type": "commonjs" }\n');
  mkdirSync(`${outdir}node`, { recursive: true });
  for (const { entryPoint, exports } of await faces(entries)) {
    const name = basename(entryPoint, ".ts");
    const face = `import cjs from "../cjs/${name}.js";\n\nexport const { ${exports.sort().join(", ")} } = cjs;\n`;
    writeFileSync(`${outdir}node/${name}.js`, face);
  }
  return built;
}

/** Files beside the package, which they import by its name, as users do: in each way of loading them. */
export async function integrations(outdir, entryPoints) {
  const options = { ...COMMON, entryPoints, packages: "external", external: ["reprieve"], platform: "neutral" };
  await build({ ...options, outdir: `${outdir}integrations`, format: "esm" });
  await build({ ...options, outdir: `${outdir}cjs/integrations`, format: "cjs" });
}

/** What the entries share, with what is theirs alone. */
async function sharedDriver() {
  const modules = ["index", "testing", "load", "clock"].map((name) => `export * from "./driver/${name}.js";\n`);
  return `${modules.join("")}export * from "./entry/choose.js";\n`;
}

/** The names that files export. */
async function faces(entryPoints) {
  const plugins = [
    {
      name: "leave",
      setup: (bundle) => bundle.onResolve({ filter: /\.(node|wasm)|wasm-engine/ }, () => ({ external: true })),
    },
  ];
  const { metafile } = await build({
    ...COMMON,
    entryPoints,
    outdir: "x",
    format: "esm",
    platform: "node",
    write: false,
    plugins,
  });
  return Object.values(metafile.outputs).filter(({ entryPoint }) => entryPoint);
}

/** Takes the driver from `driver.js`: of its public modules exactly what they export, else what is asked for. */
async function withSharedDriver(apart) {
  const names = {};
  for (const { entryPoint, exports } of await faces([`${NODE}driver/index.ts`, `${NODE}driver/testing.ts`])) {
    names[basename(entryPoint, ".ts")] = exports;
  }
  return {
    name: "shared driver",
    setup(bundle) {
      bundle.onResolve({ filter: /^\.\/driver\.js$/ }, ({ path }) => ({ path, external: true }));
      bundle.onResolve({ filter: /\/driver\/(index|testing)\.js$/ }, ({ path }) => ({ path, namespace: "public" }));
      bundle.onResolve({ filter: /\/driver\/\w+\.js$|\.\/choose\.js$/ }, () => ({
        path: "./driver.js",
        external: true,
      }));
      for (const { name } of apart) {
        bundle.onResolve({ filter: new RegExp(`^\\./${name}\\.js$`) }, ({ path }) => ({ path, external: true }));
      }
      bundle.onLoad({ filter: /.*/, namespace: "public" }, ({ path }) => ({
        contents: `export { ${names[basename(path, ".js")].join(", ")} } from "./driver.js";`,
      }));
    },
  };
}

/** Types of the entries into `types/`, and again into `cjs/types/`, where they are CommonJS. */
export function types(outdir, entries) {
  const config = `${outdir}tsconfig.json`;
  const from = (path) => relative(outdir, path);
  mkdirSync(outdir, { recursive: true });
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    stripInternal: true,
    rootDir: from(ROOT),
    outDir: "types",
  };
  const ambient = [`${ROOT}bindings-wasm/entry/wasm.d.ts`];
  const files = [...entries, ...ambient].map(from);
  writeFileSync(config, JSON.stringify({ extends: from(`${NODE}tsconfig.json`), compilerOptions, files, include: [] }));
  run(`${NODE}node_modules/.bin/tsc`, ["-p", config]);
  rmSync(config);
  cpSync(`${outdir}types`, `${outdir}cjs/types`, { recursive: true });
}
