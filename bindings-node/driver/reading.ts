/** Reading objects that others wrote. Nothing here throws, whatever a getter does. */

/** Names of properties, one inside of the other. */
export type Path = readonly string[];

/** Paths, written as `status response.status`. */
export const paths = (text: string): Path[] => text.split(" ").map((path) => path.split("."));

/** A property. */
export function get(thing: unknown, name: string): unknown {
  try {
    return (thing as Record<string, unknown> | undefined)?.[name];
  } catch {
    return undefined;
  }
}

/** What the first path leads to that passes. */
export function first<T>(thing: unknown, all: Path[], pass: (found: unknown) => T | undefined): T | undefined {
  for (const path of all) {
    let found = thing;
    for (const name of path) found = get(found, name);
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
