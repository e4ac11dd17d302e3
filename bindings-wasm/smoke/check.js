/** One call that succeeds at its second attempt: which engine, what it answered, how many attempts. */
export async function check({ engine, retry }) {
  let attempts = 0;
  const answer = await retry(
    () => {
      attempts += 1;
      if (attempts < 2) throw Object.assign(new Error("busy"), { status: 503 });
      return "fine";
    },
    { backoff: { base: 1 } },
  );
  return `${engine} ${answer} ${attempts}`;
}
