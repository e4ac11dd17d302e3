/** As much of `node:assert/strict` as the vectors' runners use. */
export default function assert(truth, message) {
  if (!truth) throw new Error(message ?? "an assertion does not hold");
}

assert.equal = (seen, expected, message) => assert(Object.is(seen, expected), message ?? `${seen} is not ${expected}`);
