/**
 * What is known of the two SDKs that can be wrapped: how one is recognised, and the few members that are used. None is
 * imported. Names of theirs that begin with an underscore stand in quotes: the driver's own are renamed for browsers.
 */
import { ConfigError } from "./errors.js";
import { get } from "./reading.js";

// The SDKs' own; in quotes, as the driver's own names are renamed for browsers.
export const THEN_UNWRAP = "_thenUnwrap";
export const RESPONSE_PROPS = "_responseProps";
const OPTIONS = "_options";
const AUTH_STATE = "_authState";

/** The options of one request. */
export interface RequestOptions {
  method?: string;
  path?: string;
  body?: unknown;
  headers?: unknown;
  maxRetries?: number;
  timeout?: number;
  stream?: boolean;
  signal?: AbortSignal | null | undefined;
  /** What comes is bytes, for the caller to read. */
  __binaryResponse?: boolean;
  fetchOptions?: object;
}

/** What a request came to, before its body is read. */
export interface Props {
  response: Response;
  controller: AbortController;
  options: RequestOptions;
}

/** Reads the body of what a request came to: the parsed value, a page, or a stream. */
export type Parse = (client: unknown, props: Props) => Promise<unknown>;

/** Makes something else of what a body was read as. */
export type Transform = (value: unknown, props: Props) => unknown;

/** The SDKs' promise: it sends at once, and reads the body when it is awaited. */
export interface ApiPromise extends Promise<unknown> {
  parseResponse: Parse;
  parsedPromise?: unknown;
  asResponse(): Promise<Response>;
  [THEN_UNWRAP](transform: Transform): ApiPromise;
  /** Of the newer ones: what the request came to, for a helper that reads it by itself where it is a stream. */
  [RESPONSE_PROPS]?: () => Promise<Props>;
}

export type Fetch = (url: unknown, init?: { headers?: unknown }) => Promise<Response>;

/** A client of either SDK. */
export interface Client {
  constructor: { [error: string]: unknown };
  maxRetries: number;
  timeout: number;
  fetch: Fetch;
  apiKey?: string | null;
  withOptions(options: object): Client;
  getUserAgent(): string;
  request(options: unknown, remaining?: number | null): ApiPromise;
  requestAPIList(page: unknown, options: unknown): ApiPromise;
  makeStatusError(status: number, body: unknown, message: undefined, headers: Headers): Error;
  makeRequest(options: RequestOptions, remaining: number | null, logId?: string, span?: unknown): Promise<Props>;
}

/** An SDK: its package, the error class that its clients carry, and the versions that were tried. */
interface Sdk {
  readonly _package: string;
  readonly _error: string;
  readonly _majors: readonly number[];
  readonly _range: string;
}

const SDKS: readonly Sdk[] = [
  { _package: "openai", _error: "OpenAIError", _majors: [5, 6, 7], _range: "5, 6 or 7" },
  { _package: "@anthropic-ai/sdk", _error: "AnthropicError", _majors: [0, 1], _range: "1, or a late 0" },
];
const MEMBERS = ["withOptions", "request", "requestAPIList", "makeRequest"];
const INSTEAD = "put policy.call around its requests, or use wrapFetch, with its own retries off";

/** Which package a client is of, as `openai 6.49.0`; throws `ConfigError` for what cannot be wrapped. */
export function sdkOf(client: unknown): string {
  const made = get(client, "constructor");
  const sdk = SDKS.find(({ _error }) => typeof get(made, _error) === "function");
  if (!sdk) {
    const name = get(made, "name") ?? typeof client;
    throw new ConfigError(
      "client",
      String(name),
      `a client of ${SDKS.map((s) => s._package).join(" or ")}; for another, ${INSTEAD}`,
    );
  }
  const agent = typeof get(client, "getUserAgent") === "function" ? (client as Client).getUserAgent() : "";
  const version = /\/JS (\d+)\.\S+/.exec(String(agent))?.[0].slice(4);
  const fits = MEMBERS.every((name) => typeof get(client, name) === "function");
  if (!version || !fits || !sdk._majors.includes(Number.parseInt(version, 10))) {
    const found = `${sdk._package} ${version ?? "of a version that does not say so"}`;
    throw new ConfigError("client", found, `${sdk._package} ${sdk._range}; with this one, ${INSTEAD}`);
  }
  return `${sdk._package} ${version}`;
}

/** Whether a timeout was chosen; the SDK's default is nobody's choice. */
export function isChosen(client: Client, ms: number | undefined): boolean {
  return ms !== undefined && ms !== client.constructor.DEFAULT_TIMEOUT;
}

/** A client with other options: a copy, by the method of its class. */
export function copied(client: Client, options: object, { withOptions }: Pick<Client, "withOptions"> = client): Client {
  // Azure's client forgets these two when it is copied.
  const { apiVersion, deploymentName } = client as { apiVersion?: string; deploymentName?: string };
  const azure = apiVersion === undefined ? {} : { apiVersion, deployment: deploymentName };
  return withOptions.call(client, { ...azure, ...options });
}

/** A copy whose own retries are off. */
export function quiet(client: Client): Client {
  const copy = copied(client, { maxRetries: 0 });
  // A copy takes the default for a choice, and then no longer refuses what takes too long without streaming.
  if (!isChosen(client, client.timeout)) (get(copy, OPTIONS) as { timeout?: number }).timeout = undefined as never;
  return copy;
}

/** The client has thrown away a token that was refused, and would ask once more with a new one if it could retry. */
export function refreshes(client: Client, error: unknown): boolean {
  return get(error, "status") === 401 && !!get(get(client, AUTH_STATE), "tokenCache") && client.apiKey == null;
}

/** An error of the SDK's own, of a class that its clients carry. */
export function sdkError(client: Client, name: string, message: string | undefined): Error | undefined {
  const Class = client.constructor[name] as (new (...args: unknown[]) => Error) | undefined;
  if (typeof Class !== "function") return undefined;
  return name === "APIError" ? new Class(undefined, undefined, message, undefined) : new Class({ message });
}
