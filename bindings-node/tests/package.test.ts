/** What is packed installs into an empty folder, runs on the native engine, and on the wasm engine where that fails. */
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const BINDING = fileURLToPath(new URL("..", import.meta.url));
const NAME = "reprieve-linux-x64-gnu";

const folder = mkdtempSync(join(tmpdir(), "reprieve-"));
after(() => rmSync(folder, { recursive: true }));

const addon = join(folder, "node_modules", NAME);
const file = join(addon, "reprieve.node");

function npm(cwd: string, ...args: string[]): string {
  return execFileSync("npm", args, { cwd, encoding: "utf8" });
}

/** Packs both packages and installs them, in a folder that has nothing else. */
function install(): void {
  const packed = [BINDING, `${BINDING}npm/linux-x64-gnu`].map((from) => {
    return join(folder, npm(from, "pack", "--silent", "--pack-destination", folder).trim());
  });
  writeFileSync(join(folder, "package.json"), '{ "private": true }');
  npm(folder, "install", "--silent", "--offline", ...packed);
}

/** A call that succeeds at its second attempt; says what it answered, and on which engine. */
const PLAY = `
  let attempts = 0;
  const busy = () => { throw Object.assign(new Error("busy"), { status: 503 }); };
  const answer = await retry(() => ++attempts < 2 ? busy() : "fine", { backoff: { base: 1 } });
  console.log(engine, answer, attempts);`;

function play(from: string, kind: "module" | "commonjs" = "module"): string {
  const names = "{ retry, engine }";
  const code = {
    module: `import ${names} from "${from}"; ${PLAY}`,
    commonjs: `const ${names} = require("${from}"); (async () => {${PLAY}})();`,
  }[kind];
  const { stdout, stderr, status, signal } = spawnSync(process.execPath, [`--input-type=${kind}`, "-e", code], {
    cwd: folder,
    encoding: "utf8",
  });
  return status === 0 ? stdout.trim() : `${signal ?? ""}${stderr}`;
}

test("a packed package", async (t) => {
  install();
  const whole = readFileSync(file);
  await t.test("runs on the native engine, as a module and as CommonJS", () => {
    assert.equal(play("reprieve"), "native fine 2");
    assert.equal(play("reprieve", "commonjs"), "native fine 2");
  });
  await t.test("runs on the engine that an entry insists on", () => {
    assert.equal(play("reprieve/native"), "native fine 2");
    assert.equal(play("reprieve/wasm"), "wasm fine 2");
    assert.equal(play("reprieve/wasm", "commonjs"), "wasm fine 2");
  });
  await t.test("has attempts that are seen across an await, for who imports that", () => {
    const code = `
      import "reprieve/context";
      import { currentAttempt, retry } from "reprieve";
      await retry(async () => console.log(await null, currentAttempt()?.number));`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
      cwd: folder,
      encoding: "utf8",
    });
    assert.equal(stdout.trim(), "null 1");
  });
  for (const [damage, does] of Object.entries<() => void>({
    "is no library": () => writeFileSync(file, "not a library"),
    "is cut short": () => truncateSync(file, whole.length - 100_000),
    "is empty": () => truncateSync(file, 0),
    "is not what it was, of the same length": () => writeFileSync(file, Buffer.alloc(whole.length)),
    "is gone": () => rmSync(file),
  })) {
    await t.test(`runs on the wasm engine where the addon ${damage}`, () => {
      does();
      assert.equal(play("reprieve"), "wasm fine 2");
      assert.match(play("reprieve/native"), /no native engine for/);
      writeFileSync(file, whole);
    });
  }
  await t.test("runs on the wasm engine where the addon is another version's", () => {
    cpSync(join(addon, "index.js"), join(addon, "kept.js"));
    writeFileSync(join(addon, "index.js"), 'module.exports = { ...require("./kept.js"), version: () => "0.0.9" };');
    assert.equal(play("reprieve"), "wasm fine 2");
    assert.match(play("reprieve/native"), /is of version 0\.0\.9/);
  });
  await t.test("runs on the wasm engine where no package of the platform is installed", () => {
    rmSync(addon, { recursive: true });
    assert.equal(play("reprieve"), "wasm fine 2");
    assert.equal(play("reprieve", "commonjs"), "wasm fine 2");
  });
});
