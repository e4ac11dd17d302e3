/** Assertions that work in Node and on a page. */

export function equal(seen, expected) {
  if (!Object.is(seen, expected)) throw new Error(`expected ${spelled(expected)}, saw ${spelled(seen)}`);
}

/** Of lists and plain objects. */
export function same(seen, expected) {
  equal(spelled(seen), spelled(expected));
}

export function matches(seen, pattern) {
  if (!pattern.test(seen)) throw new Error(`expected ${pattern}, saw ${spelled(seen)}`);
}

/** What was thrown, if anything. */
export async function thrown(body) {
  try {
    await body();
  } catch (error) {
    return error;
  }
  return undefined;
}

const spelled = (value) =>
  JSON.stringify(value, (_, inner) => {
    if (inner instanceof Error) return `${inner.name}: ${inner.message}`;
    return inner === undefined ? "undefined" : inner;
  });
