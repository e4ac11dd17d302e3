/** Serves files of a few folders under a strict policy: scripts of its own, and wasm. */
import { createReadStream, existsSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };
const POLICY = "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'";

/** `mounts` are pairs of a prefix and a folder, the longest prefix first. Answers the server and its address. */
export async function serve(mounts) {
  const server = createServer(({ url }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    const [prefix, folder] = mounts.find(([prefix]) => pathname.startsWith(prefix));
    const file = join(folder, normalize(pathname.slice(prefix.length)));
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, {
      "content-type": TYPES[extname(file)] ?? "text/plain",
      "content-security-policy": POLICY,
    });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, address: `http://127.0.0.1:${server.address().port}` };
}
