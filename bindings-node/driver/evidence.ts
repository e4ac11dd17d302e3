/**
 * Any thrown value into evidence: the raw facts of one failure, which the core classifies.
 *
 * No SDK is imported. Facts are found where clients keep them, so that one nobody here has heard of is read as well
 * when it keeps its facts in one of the usual places. Nothing here decides.
 */
import type { Attempt } from "./attempt.js";
import { chainOf } from "./chain.js";
import { clock } from "./clock.js";
import { toJson } from "./fields.js";
import { first, get, paths, text } from "./reading.js";
import { attached } from "./trace.js";

// Where each fact is kept, the most telling first: openai, anthropic, fetch's Response; Node, the AI SDK; axios; got;
// AWS; Google.
const STATUS = paths("status statusCode response.status response.statusCode $metadata.httpStatusCode code");
const HEADERS = paths("headers response.headers responseHeaders $response.headers");
const BODY = paths("error response.data responseBody body response.body data");

// gRPC's statuses are numbers; its message starts with number and name.
const GRPC = /^\d+ ([A-Z_]+): /;
const OS_CODE = /^(E[A-Z\d]+|EAI_\w+|(UND_)?ERR_\w+|[A-Z_]*CERT[A-Z_]*|[A-Z_]*SIGNATURE)$/;
const CANCELLED = /^(AbortError|APIUserAbortError|CanceledError|ABORT_ERR|ERR_CANCELED)$/;
// A fetch that found no server says so in prose: Chromium, Firefox, Safari, Node, Deno, Bun; and one that was cut.
const UNREACHED =
  /^(Failed to fetch|NetworkError when|Load failed|fetch failed|error sending request|Unable to connect)/;
const CUT = /^(terminated|network error|Error in input stream)$/;

const MOST_TYPES = 64;
const MOST_HEADERS = 200;
const LARGEST = 1 << 20;

/** What is known of a value that was thrown, in an attempt or elsewhere, as JSON for the core. */
export function evidenceOf(error: unknown, attempt?: Attempt): string {
  const inCheck = !!attempt?._answered;
  if (isBare(error) && !attempt?._inAnswer && !inCheck) {
    const message = messageOf(error);
    if (!attached(error) && !UNREACHED.test(message) && !CUT.test(message)) return toJson(message);
  }
  return evidenceJson({ ...factsOf(error, attempt), ...(inCheck && { in_check: true }) });
}

/** The same as an object. A trace that ended before the attempt began is another call's. */
export function factsOf(error: unknown, attempt?: Attempt): Record<string, unknown> {
  const chain = chainOf(error);
  const of = <T>(read: (link: unknown) => T | undefined): T | undefined => {
    for (const link of chain) {
      const fact = read(link);
      if (fact !== undefined) return fact;
    }
    return undefined;
  };
  const types = chain.map(typesOf);
  const answered = of(answer);
  const began = attempt?._began() ?? 0;
  const evidence: Record<string, unknown> = {
    error_types: types.flat().slice(0, MOST_TYPES),
    message: messageOf(error),
    os_code: of(osCode),
    inner_trace:
      of((link) => {
        const trace = attached(link);
        // What an inner call brought whole is no failure that it has retried.
        return trace?.note && trace._endedAt >= began ? trace.traceId : undefined;
      }) ?? retold(answered?.status, attempt),
    wall_now_ms: clock.wall(),
    ...answered,
  };
  if ([...(types[0] ?? []), get(error, "code")].some((name) => CANCELLED.test(String(name)))) evidence.cancelled = true;
  if (attempt?._inAnswer || of((link) => CUT.exec(messageOf(link)))) evidence.in_stream = true;
  return evidence;
}

/** JSON of evidence; without its body where that is too large, or is none. */
export function evidenceJson(evidence: Record<string, unknown>): string {
  const { body } = evidence;
  try {
    if (body === undefined || toJson(body).length <= LARGEST) return toJson(evidence);
  } catch {
    // A cycle or a bigint: no body that came over a wire.
  }
  return toJson({ ...evidence, body: undefined });
}

/** The inner call whose last answer an error tells again by its status, without being linked to it. */
function retold(status: unknown, attempt: Attempt | undefined): string | undefined {
  const { _status, _trace } = attempt?._gaveUp ?? {};
  return _trace && status === _status ? _trace.traceId : undefined;
}

/** What the other side answered, as far as this link carries it. */
function answer(link: unknown): Record<string, unknown> | undefined {
  if (Object(link) !== link || isBare(link)) return undefined;
  const status = first(link, STATUS, (found) =>
    Number.isInteger(found) && Number(found) >= 100 && Number(found) < 600 ? found : undefined,
  );
  const message = messageOf(link);
  // Google's client keeps the answer in the message.
  const body = first(link, BODY, bodyOf) ?? (status && message.startsWith("{") ? message : undefined);
  const code = codeOf(link);
  if (status === undefined && code === undefined && typeof body !== "object") return undefined;
  return {
    status,
    headers: first(link, HEADERS, headersOf),
    body,
    provider_code: code,
    provider_type: text(get(link, "type")),
  };
}

/** An `Error` with nothing but a message, as most are. */
function isBare(link: unknown): link is Error {
  try {
    const { name, code, cause, errors } = link as Record<string, unknown>;
    const more = code ?? cause ?? errors;
    const plain = Object.getPrototypeOf(link) === Error.prototype && name === "Error" && more === undefined;
    return plain && Object.keys(link as object).length === 0;
  } catch {
    return false;
  }
}

function codeOf(link: unknown): string | undefined {
  const code = get(link, "code");
  if (get(link, "$metadata")) return text(get(link, "name"));
  if (typeof code === "number" && get(link, "details") !== undefined) return GRPC.exec(messageOf(link))?.[1];
  const word = text(code);
  return word && !OS_CODE.test(word) ? word : undefined;
}

/** `ECONNRESET` and the like. */
function osCode(link: unknown): string | undefined {
  const code = text(get(link, "code"));
  const message = messageOf(link);
  // axios says so of its own timeout.
  if (code === "ECONNABORTED" && message.startsWith("timeout")) return "ETIMEDOUT";
  if (code && OS_CODE.test(code)) return code;
  return UNREACHED.test(message) && !get(link, "cause") ? "ERR_NETWORK" : undefined;
}

function messageOf(link: unknown): string {
  const told = typeof link === "object" ? get(link, "message") : link;
  return text(told) ?? (told === undefined || typeof told === "object" ? "" : (text(String(told)) ?? ""));
}

/** Its classes, most derived first, without what every error is; and the name it goes by. */
function typesOf(link: unknown): string[] {
  const types = [...classesOf(link)];
  const name = get(link, "name");
  if (isType(name) && !types.includes(name)) types.push(name);
  if (types.includes("AttemptTimeout")) types.push("TimeoutError");
  return types;
}

/** The names of classes, by prototype: they are asked for once. */
const classes = new WeakMap<object, string[]>();

function classesOf(link: unknown): string[] {
  const names = new Set<string>();
  try {
    const proto = Object.getPrototypeOf(link);
    const known = classes.get(proto);
    if (known) return known;
    for (let at = proto; at; at = Object.getPrototypeOf(at)) {
      // Our own go by their brand, whatever a bundler has made of their names: so the core knows them everywhere.
      const brands = Object.getOwnPropertySymbols(at).map(Symbol.keyFor);
      for (const name of [...brands, get(get(at, "constructor"), "name")]) if (isType(name)) names.add(name);
    }
    classes.set(proto, [...names]);
  } catch {
    // `null`, `undefined`, a proxy that refuses, no prototype.
  }
  return [...names];
}

function isType(name: unknown): name is string {
  return text(name) !== undefined && name !== "Error" && name !== "Object";
}

/** Pairs of headers, from whatever a client keeps them in. */
export function headersOf(found: unknown): [string, string][] | undefined {
  const pairs: [string, string][] = [];
  try {
    const all = Symbol.iterator in Object(found) ? (found as Iterable<unknown>) : Object.entries(found as object);
    for (const pair of all) {
      const [name, value] = pair as [string, unknown];
      for (const one of [value].flat()) if (pairs.length < MOST_HEADERS) pairs.push([String(name), String(one)]);
    }
  } catch {
    // No headers, or the first of them.
  }
  return pairs.length > 0 ? pairs : undefined;
}

/** A body that was read: text, bytes, or parsed. A stream is none, and nothing that has a class of its own. */
function bodyOf(found: unknown): unknown {
  if (typeof found === "string") return found.length <= LARGEST ? found || undefined : undefined;
  if (found instanceof Uint8Array) return bodyOf(new TextDecoder().decode(found.subarray(0, LARGEST + 1)));
  if (Array.isArray(found)) return found;
  const proto = typeof found === "object" ? Object.getPrototypeOf(found) : found;
  return proto === null || proto === Object.prototype ? found : undefined;
}
