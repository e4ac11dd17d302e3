/** For runtimes with a command line: imports the package named there, checks it and prints the result. */
import { check } from "./check.js";

const [name] = globalThis.Deno?.args ?? process.argv.slice(2);
const reprieve = await import(name);
await reprieve.init?.();
console.log(await check(reprieve));
