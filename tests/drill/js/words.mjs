/** How a step ended, in words: what was expected, and what happened, in the same ones. */
import { counted, isObject } from "./check.mjs";

export function expectedWords(expect) {
  if (isObject(expect.target)) return countedWords(expect.target);
  return end(expect.outcome, expect.target, expect);
}

export function seenWords(seen, expect) {
  if (isObject(expect.target)) return countedWords(counted(seen.calls.map((call) => call.ended.target)));
  return [...new Set(seen.calls.map(({ ended, failure }) => end(ended.outcome, ended.target, failure)))].join(" or ");
}

function end(outcome, target, { category, kind }) {
  if (outcome === "failure") return `${category} ${kind}`;
  const onBackup = outcome === "success" && target && target !== "primary";
  return onBackup ? `success on ${target}` : (outcome ?? "nothing");
}

function countedWords(targets) {
  const sorted = Object.entries(targets).sort().reverse();
  return sorted.map(([target, count]) => `${count} ${target}`).join(", ");
}
