/** Reading objects that others wrote. Nothing here throws, whatever a getter does. */

/** A property, or what stands at the end of a path of them (`response.headers`). */
export function get(thing: unknown, path: string): unknown {
  try {
    // biome-ignore lint/suspicious/noExplicitAny: anything may be thrown
    return path.split(".").reduce((at: any, name) => at?.[name], thing);
  } catch {
    return undefined;
  }
}

/** What the first path leads to that passes. */
export function first<T>(thing: unknown, paths: readonly string[], pass: (found: unknown) => T | undefined): T | undefined {
  for (const path of paths) {
    const found = get(thing, path);
    const fact = found == null ? undefined : pass(found);
    if (fact !== undefined) return fact;
  }
  return undefined;
}

const LONGEST_TEXT = 8192;

/** Text, if it is some. */
export function text(found: unknown): string | undefined {
  return typeof found === "string" && found ? found.slice(0, LONGEST_TEXT) : undefined;
}
