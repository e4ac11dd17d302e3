/** A test that hangs must fail: nothing here takes so long. */

/** Ends the process with an error after so many seconds, unless it has ended by then. */
export function deadline(seconds) {
  setTimeout(() => {
    console.error(`not over after ${seconds} s`);
    process.exit(1);
  }, seconds * 1000).unref();
}
