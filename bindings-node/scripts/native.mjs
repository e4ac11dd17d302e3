/** Builds the addon for this platform into its package, and writes down the types it has. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";

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
writeFileSync(`${folder}index.js`, loader(statSync(`${folder}reprieve.node`).size));
mkdirSync(`${NODE}gen`, { recursive: true });
writeFileSync(`${NODE}gen/native.d.ts`, declarations(readFileSync(`${types}reprieve-node`, "utf8")));

/** Loading a file that was cut short, by a full disk say, would kill the process where an error can be caught. */
function loader(bytes) {
  return `const { statSync } = require("node:fs");

const file = \`\${__dirname}/reprieve.node\`;
const { size } = statSync(file);
if (size !== ${bytes}) throw new Error(\`\${file} has \${size} bytes, not ${bytes}\`);
module.exports = require(file);
`;
}

/** One line of JSON for each function, class and its methods. */
function declarations(lines) {
  const written = lines
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const methods = new Map(written.filter(({ kind }) => kind === "impl").map(({ name, def }) => [name, def]));
  return asEngineTypes(
    written
      .filter(({ kind }) => kind === "struct" || kind === "fn")
      .map(({ kind, name, def }) =>
        kind === "fn" ? `export ${def}\n` : `export class ${name} {\n${methods.get(name)}\n}\n`,
      )
      .join(""),
  );
}
