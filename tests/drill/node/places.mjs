/** Where the calls of the drill go: the fault gateway, and a listener that accepts nobody. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";

/** Starts the gateway: its address, and how to end it. */
export async function openGateway(binary) {
  const child = spawn(binary, ["--until-stdin-closes"], { stdio: ["pipe", "pipe", "inherit"] });
  const line = await firstLine(child);
  if (!line.startsWith("listening on ")) throw new Error(`${binary} does not listen: ${line}`);
  return { url: line.split(" ").at(-1), close: () => child.stdin.end() };
}

// Listens, says where, and then never looks at its socket again; it ends by itself should nobody end it.
const LISTENER = `
  const server = require("node:net").createServer();
  server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
    require("node:fs").writeSync(1, server.address().port + "\\n");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300_000);
    process.exit();
  });`;

/** A connection that has not come about after so many milliseconds never will. */
const PATIENCE_MS = 200;
const MOST = 64;

/** A listener whose queue is full: who connects to it waits, and is neither accepted nor refused. */
export async function openFullBacklog() {
  const child = spawn(process.execPath, ["-e", LISTENER], { stdio: ["ignore", "pipe", "inherit"] });
  const port = Number(await firstLine(child));
  const waiting = [];
  do {
    if (waiting.length > MOST) throw new Error("this system queues more connections than a backlog of 1 allows");
    waiting.push(connect(port, "127.0.0.1").on("error", () => {}));
  } while (await connects(waiting.at(-1)));
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      for (const socket of waiting) socket.destroy();
      child.kill("SIGKILL");
    },
  };
}

function connects(socket) {
  return new Promise((resolve) => {
    socket.once("connect", () => resolve(true));
    // On a busy machine both are due: what has connected is heard of first.
    setTimeout(() => setImmediate(resolve, false), PATIENCE_MS);
  });
}

async function firstLine(child) {
  const lines = createInterface({ input: child.stdout });
  const [line] = await Promise.race([once(lines, "line"), once(child, "exit").then(() => [""])]);
  return line;
}
