/** `node:test`, as far as the vectors' runners use it: tests are kept until the page asks for them, one by one. */
const tests = [];

export function test(name, body) {
  tests.push([name, body]);
}

/** Runs every test: what each said, and what failed. */
export async function runAll() {
  const results = [];
  for (const [name, body] of tests) {
    const told = [];
    try {
      await body({ diagnostic: (line) => told.push(line) });
      results.push({ name, told });
    } catch (error) {
      results.push({ name, told, failure: error.message });
    }
  }
  return results;
}
