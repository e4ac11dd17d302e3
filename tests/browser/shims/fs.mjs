/** Files are asked of the server, and waited for: the vectors' runners read as Node does. */
export function readFileSync(url) {
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  request.send();
  if (request.status !== 200) throw new Error(`${url}: ${request.status}`);
  return request.responseText;
}
