/** Builds the addon for this platform into its package, and writes down the types it has. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";

import { asEngineTypes, cargo, NODE, TARGET } from "./run.mjs";

const LIBRARIES = { darwin: "libreprieve_node.dylib", win32: "reprieve_node.dll" };
const ABIS = { linux: "-gnu", win32: "-msvc" };

const { platform, arch } = process;
const folder = `${NODE}npm/${platform}-${arch}${ABIS[platform] ?? ""}/`;
const types = `${TARGET}napi-types/`;

mkdirSync(types, { recursive: true });
if (!existsSync(`${types}reprieve-node`)) {
  // The macros write the types while they compile; what is compiled already has written none here.
  const now = new Date();
  utimesSync(`${NODE}src/lib.rs`, now, now);
}
cargo(["--release", "-p", "reprieve-node"], { NAPI_TYPE_DEF_TMP_FOLDER: types });

mkdirSync(folder, { recursive: true });
copyFileSync(`${TARGET}release/${LIBRARIES[platform] ?? "libreprieve_node.so"}`, `${folder}reprieve.node`);
mkdirSync(`${NODE}gen`, { recursive: true });
writeFileSync(`${NODE}gen/native.d.ts`, declarations(readFileSync(`${types}reprieve-node`, "utf8")));

/** One line of JSON for each function, class and its methods. */
function declarations(lines) {
  const written = lines.trim().split("\n").map((line) => JSON.parse(line));
  const methods = new Map(written.filter(({ kind }) => kind === "impl").map(({ name, def }) => [name, def]));
  return asEngineTypes(
    written
      .filter(({ kind }) => kind === "struct" || kind === "fn")
      .map(({ kind, name, def }) => (kind === "fn" ? `export ${def}\n` : `export class ${name} {\n${methods.get(name)}\n}\n`))
      .join(""),
  );
}
