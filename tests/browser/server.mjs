/**
 * A static server on a free port, for pages under test: what lies in folders is served under names, and a page may ask
 * for a content security policy of its own (`?csp=...`). A name can also lead to another server.
 */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { request as ask, createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".jsonl": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
};

/** Serves `{"/name/": folder}`, or passes on to `{"/name/": "http://..."}`; answers its address and how to end it. */
export async function serve(folders) {
  const server = createServer((request, response) => answer(folders, request, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function answer(folders, request, response) {
  const { pathname, searchParams } = new URL(request.url, "http://here");
  // A browser asks for one by itself, and would complain.
  if (pathname === "/favicon.ico") return response.writeHead(204).end();
  const path = normalize(decodeURIComponent(pathname));
  const name = Object.keys(folders).find((start) => path.startsWith(start));
  if (folders[name]?.startsWith("http:")) return passOn(folders[name], request, response);
  const file = name && join(folders[name], path.slice(name.length));
  const found = file && (await stat(file).catch(() => undefined));
  if (!found?.isFile()) return response.writeHead(404).end();
  const headers = { "content-type": TYPES[extname(file)] ?? "application/octet-stream", "cache-control": "no-store" };
  const csp = searchParams.get("csp");
  if (csp) headers["content-security-policy"] = csp;
  response.writeHead(200, headers);
  createReadStream(file).pipe(response);
}

function passOn(server, request, response) {
  const { method, headers } = request;
  const asked = ask(new URL(request.url, server), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  asked.on("error", () => response.destroy());
  request.pipe(asked);
}
