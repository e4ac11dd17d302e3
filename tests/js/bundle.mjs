/** TypeScript and packages into one module that Node or a browser runs as it is. */
import { build } from "esbuild";

import { ROOT, TARGET } from "./paths.mjs";

/** Bundles files of the repository into `target/js/FOLDER/`, and answers that folder. */
export async function bundle(folder, entryPoints, platform = "browser", options = {}) {
  const outdir = `${TARGET}js/${folder}/`;
  await build({
    absWorkingDir: ROOT,
    entryPoints,
    outdir,
    platform,
    bundle: true,
    format: "esm",
    target: "es2022",
    entryNames: "[name]",
    outExtension: { ".js": ".mjs" },
    logLevel: "warning",
    ...options,
  });
  return outdir;
}
