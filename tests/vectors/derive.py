"""Writes 20-backoff.json and 21-jitter.json: waits computed from the rules alone, in whole numbers.

An independent second implementation: it shares no code with the core, and it is the only place where the expected
waits come from. Run `python3 derive.py` in this folder; `python3 derive.py --check` fails if a file would change.
"""

import json
import pathlib
import re
import sys
from fractions import Fraction

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
ONE = 1_000_000  # ratios and factors are millionths
JITTER, SPREAD, COOLING = 0, 1, 2
UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}


# The rules ---------------------------------------------------------------------------------------------------------
def mix(z):
    """SplitMix64's finaliser."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def draw(seed, attempt, purpose, low, high):
    """U[low, high], both ends included."""
    x = mix((mix((seed + GOLDEN) & MASK) + GOLDEN * (8 * attempt + purpose)) & MASK)
    return low + (x * (high - low + 1) >> 64)


def ns(text):
    """A duration's nanoseconds: numbers with units, added up."""
    total = sum(Fraction(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+)([a-z]+)", text))
    assert total.denominator == 1, text
    return int(total)


def text(nanos):
    """The duration as people read it where it is whole milliseconds, else in nanoseconds."""
    if nanos % 10**6:
        return f"{nanos}ns"
    return f"{nanos // 10**9}s" if nanos % 10**9 == 0 else f"{nanos // 10**6}ms"


def millionths(number):
    return int(Fraction(str(number)) * ONE)


def curve(backoff, n):
    """The wait after attempt n on a target, before cap and jitter."""
    kind, base = backoff["kind"], ns(backoff.get("base", "500ms"))
    if kind == "constant":
        return base
    if kind == "linear":
        return base * n
    if kind == "schedule":
        return ns(backoff["delays"][min(n, len(backoff["delays"])) - 1])
    for _ in range(n - 1):  # exponential: step by step, each product floored
        step = base * millionths(backoff.get("factor", 2)) // ONE
        if step == base or base > ns(backoff["max"]):
            break  # it no longer moves, or the cap decides anyway
        base = step
    return base


def interval(jitter, c, cap):
    """The ends that a wait of `c` is drawn from."""
    kind, r = jitter["kind"], millionths(jitter.get("ratio", 0))
    if kind in ("proportional", "additive"):
        c = min(c, cap * ONE // (ONE + r))
        return (c if kind == "additive" else c * (ONE - r) // ONE), c * (ONE + r) // ONE
    c = min(c, cap)
    return {"none": c, "full": 0, "lower_bounded": c * (ONE - r) // ONE}[kind], c


def wait(policy, kind, seed, attempt, n, previous=None):
    """The backoff after attempt `attempt`, the n-th on its target; `kinds` may override curve and jitter."""
    own = policy.get("kinds", {}).get(kind, {})
    backoff = own.get("backoff", policy["backoff"])
    cap = ns(backoff.get("max", "20s"))
    if backoff["kind"] == "decorrelated":
        base = ns(backoff["base"])
        return min(cap, draw(seed, attempt, JITTER, base, 3 * (base if previous is None else previous)))
    jitter = own.get("jitter", policy.get("jitter", {"kind": "lower_bounded", "ratio": 0.5}))
    return draw(seed, attempt, JITTER, *interval(jitter, curve({"max": "20s"} | backoff, n), cap))


def spread(policy, seed, attempt, retry_after, purpose=SPREAD):
    share = millionths(policy.get("retry_after", {}).get("spread", 0.1))
    return draw(seed, attempt, purpose, 0, retry_after * share // ONE)


def delay(policy, kind, seed, attempt, n, retry_after=None, previous=None):
    own = wait(policy, kind, seed, attempt, n, previous)
    return own if retry_after is None else max(own, retry_after + spread(policy, seed, attempt, retry_after))


# The cases ---------------------------------------------------------------------------------------------------------
def case(ident, description, backoff, jitter, seed=1, attempt=1, n=None, kind="server_error", hint=None,
         previous=None, **policy):
    """One case; `hint` is the retry-after, and what else is named is a field of the policy."""
    n = attempt if n is None else n
    policy = {"backoff": backoff} | ({"jitter": jitter} if jitter else {}) | policy
    result = delay(policy, kind, seed, attempt, n, ns(hint) if hint else None, ns(previous) if previous else None)
    made = {"id": ident, "description": description, "policy": policy,
            "seed": seed if seed < 2**53 else str(seed), "attempt": attempt, "n": n, "kind": kind}
    if hint is not None:
        made["retry_after"] = hint
    if previous is not None:
        made["previous"] = previous
    return made | {"expect": text(result)}


def shape(kind, base="500ms", cap="20s", **more):
    return {"kind": kind, "base": base} | more | {"max": cap}


NONE = {"kind": "none"}
FULL = {"kind": "full"}
BIG = 2**32 - 1


def ratio(kind, r):
    return {"kind": kind, "ratio": r}


def backoff_cases():
    exp2 = shape("exponential", factor=2)
    yield case("backoff-constant-1", "A constant curve is its base.", shape("constant", "750ms"), NONE)
    yield case("backoff-constant-9", "A constant curve does not grow.", shape("constant", "750ms"), NONE, attempt=9)
    yield case("backoff-zero", "0 means 0: a zero base waits not at all.", shape("constant", "0s", "0s"), NONE)
    yield case("backoff-zero-exponential", "Zero doubled is zero.", shape("exponential", "0s", "20s", factor=2), NONE,
               attempt=30)
    yield case("backoff-linear-1", "curve(1) is the base.", shape("linear", "300ms"), NONE)
    yield case("backoff-linear-4", "Linear is base x n.", shape("linear", "300ms"), NONE, attempt=4)
    yield case("backoff-linear-cap", "A linear curve stops at the cap.", shape("linear", "300ms", "1s"), NONE,
               attempt=4)
    yield case("backoff-linear-saturates", "base x n saturates: this product would wrap to 4.3 s in 64 bits.",
               shape("linear", f"{2**32 + 2}ns"), NONE, attempt=BIG)
    for n in (1, 2, 3, 6, 7):
        yield case(f"backoff-exponential-{n}", "Exponential doubles from its base and stops at the cap (at n = 7).",
                   exp2, NONE, attempt=n)
    yield case("backoff-exponential-cap-exact", "A curve that meets the cap exactly is the cap.",
               shape("exponential", "1s", "8s", factor=2), NONE, attempt=4)
    yield case("backoff-exponential-huge-n", "Growth saturates at the cap for any n.", exp2, NONE, attempt=BIG)
    yield case("backoff-exponential-factor-1", "Factor 1 stays at the base for any n.",
               shape("exponential", "2s", factor=1), NONE, attempt=BIG)
    yield case("backoff-exponential-steps", "Each step is floored: 3, 4, 6, 9, 13 ns, where 3 x 1.5^4 would give 15.",
               shape("exponential", "3ns", factor=1.5), NONE, attempt=5)
    yield case("backoff-exponential-stuck", "A product floored to itself no longer moves: 1 ns x 1.5.",
               shape("exponential", "1ns", factor=1.5), NONE, attempt=BIG)
    yield case("backoff-exponential-millionths", "A factor is held in millionths.",
               shape("exponential", "1s", factor=1.000001), NONE, attempt=3)
    yield case("backoff-exponential-factor-1.1", "Floors after each of nine steps.",
               shape("exponential", "333333333ns", factor=1.1), NONE, attempt=10)
    schedule = {"kind": "schedule", "delays": ["1s", "5s", "2s"], "max": "20s"}
    for n in (1, 2, 3, 4):
        yield case(f"backoff-schedule-{n}", "A schedule is taken in order, and its last entry repeats (n = 4).",
                   schedule, NONE, attempt=n)
    yield case("backoff-schedule-huge-n", "The last entry repeats for ever.", schedule, NONE, attempt=BIG)
    yield case("backoff-schedule-cap", "The cap holds for a schedule too.", schedule | {"max": "3s"}, NONE, attempt=2)
    yield case("backoff-n-not-attempt", "n counts attempts on this target: attempt 4 of the call, the first here.",
               exp2, NONE, attempt=4, n=1)
    yield case("backoff-n-second-on-target", "n counts attempts on this target, not over the call.", exp2, NONE,
               attempt=5, n=2)
    throttle = {"rate_limit": {"backoff": shape("exponential", "1s", "30s", factor=2)}}
    yield case("backoff-kind-override", "`kinds` overrides the backoff of one kind: a throttle waits longer.", exp2,
               NONE, attempt=2, kind="rate_limit", kinds=throttle)
    yield case("backoff-kind-override-cap", "The override brings its own cap.", exp2, NONE, attempt=9,
               kind="rate_limit", kinds=throttle)
    yield case("backoff-kind-override-others", "Other kinds keep the policy's own backoff.", exp2, NONE, attempt=2,
               kind="timeout", kinds=throttle)
    for n, secs in enumerate((0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20, 20), 1):
        made = case(f"backoff-aws-{n}", f"AWS standard mode's own table at draw 1: {secs} s before retry {n}.",
                    shape("exponential", "50ms", factor=2), NONE, attempt=n)
        assert ns(made["expect"]) == round(secs * 10**9), made
        yield made
    flat = {"retry_after": {"max": "60s", "spread": 0}}
    yield case("backoff-retry-after-longer", "delay is the larger one: the retry-after.", exp2, NONE, hint="7s", **flat)
    yield case("backoff-retry-after-shorter", "delay is the larger one: the backoff.", exp2, NONE, attempt=5,
               hint="7s", **flat)
    yield case("backoff-retry-after-zero", "A zero retry-after leaves the backoff.", exp2, NONE, hint="0s")
    yield case("backoff-retry-after-past-cap", "The backoff's cap does not bind a retry-after.",
               shape("exponential", "500ms", "2s", factor=2), NONE, hint="45s", **flat)


def jitter_cases():
    exp2 = shape("exponential", factor=2)
    kinds = [("none", NONE), ("full", FULL), ("lower-bounded", ratio("lower_bounded", 0.5)),
             ("proportional", ratio("proportional", 0.2)), ("additive", ratio("additive", 0.5))]
    what = {"none": "exactly c", "full": "U[0, c]", "lower-bounded": "U[c(1-r), c]",
            "proportional": "U[c(1-r), c(1+r)]", "additive": "U[c, c(1+r)]"}
    for name, jitter in kinds:
        for seed, attempt in ((0, 1), (42, 2), (MASK, 3)):
            yield case(f"jitter-{name}-seed-{'max' if seed == MASK else seed}",
                       f"{name}: {what[name]}, the frozen draw of this seed and attempt.", exp2, jitter,
                       seed=seed, attempt=attempt)
    yield case("jitter-default", "The default jitter is lower-bounded with ratio 0.5.", exp2, None, seed=7, attempt=3)
    for name, r in (("lower_bounded", 0), ("lower_bounded", 1), ("proportional", 1), ("additive", 1)):
        yield case(f"jitter-{name.replace('_', '-')}-ratio-{r}", "A ratio may be 0 or 1.", exp2, ratio(name, r),
                   seed=11, attempt=2)
    for name, jitter in kinds[1:]:
        yield case(f"jitter-{name}-at-cap", "Past the cap the draw stays below it, and jitter survives it.", exp2,
                   jitter, seed=5, attempt=12)
    yield case("jitter-lower-bounded-floors", "The lower end is floored: 7 ns x (1 - 1/3).", shape("constant", "7ns"),
               ratio("lower_bounded", 0.333333), seed=9)
    yield case("jitter-proportional-floors", "Both ends are floored.", shape("constant", "11ns"),
               ratio("proportional", 0.3), seed=9)
    yield case("jitter-proportional-cap-floors",
               "The cap over (1 + r) is floored, so that the upper end never passes it.",
               shape("constant", "10ns", "10ns"), ratio("proportional", 0.3), seed=3)
    yield case("jitter-additive-cap", "At the cap c is max/(1 + r), so that c(1 + r) is at most the cap.",
               shape("constant", "3s", "3s"), ratio("additive", 0.5), seed=3)
    yield case("jitter-additive-near-cap", "A curve between max/(1 + r) and max is drawn from max/(1 + r) on.",
               shape("constant", "2500ms", "3s"), ratio("additive", 0.5), seed=21)
    yield case("jitter-zero", "U[0, 0] is 0.", shape("constant", "0s", "0s"), FULL, seed=77)
    yield case("jitter-one-ns", "Both ends are included: U[0, 1 ns] for a seed that draws the upper one.",
               shape("constant", "1ns"), FULL, seed=one_ns_seed(1))
    yield case("jitter-one-ns-low", "Both ends are included: U[0, 1 ns] for a seed that draws the lower one.",
               shape("constant", "1ns"), FULL, seed=one_ns_seed(0))
    for seed, name in ((2**53, "2-53"), (2**63, "2-63"), (MASK - 1, "max-1"), (MASK - GOLDEN + 1, "wraps-to-0")):
        yield case(f"jitter-seed-{name}", "Every u64 is a seed; sums and products wrap.", exp2, FULL, seed=seed)
    yield case("jitter-attempt-max", "The last attempt number there is: 8 x attempt does not overflow.", exp2, FULL,
               seed=1, attempt=BIG)
    yield case("jitter-longest", "90 days in full: the product of draw and width needs 128 bits.",
               shape("constant", "90d", "90d"), FULL, seed=8)
    yield case("jitter-attempt-of-the-call", "The draw takes the last number issued, the curve takes n.", exp2, FULL,
               seed=42, attempt=5, n=2)
    yield case("jitter-kind-override", "`kinds` overrides the jitter of one kind.", exp2, FULL, seed=42,
               kind="conflict", kinds={"conflict": {"jitter": NONE}})
    yield case("jitter-kind-override-others", "Other kinds keep the policy's own jitter.", exp2, NONE, seed=42,
               kinds={"conflict": {"jitter": FULL}})
    apart = shape("decorrelated", "1s", "20s")
    previous = None
    for attempt in range(1, 7):
        made = case(f"jitter-decorrelated-{attempt}", "Decorrelated is min(max, U[base, 3 x previous]); previous "
                    "starts at base, then is its own draw.", apart, None, seed=13, attempt=attempt, previous=previous)
        previous = made["expect"]
        yield made
    yield case("jitter-decorrelated-clamped", "The draw is clamped at the cap, not drawn below it.", apart, None,
               seed=2, attempt=4, previous="20s")
    yield case("jitter-decorrelated-zero", "A zero base stays zero.", shape("decorrelated", "0s", "20s"), None, seed=4,
               previous="0s")
    short = shape("constant", "1s")
    for seed, attempt, share in ((7, 1, 0.1), (7, 2, 0.1), (8, 1, 1), (9, 1, 0)):
        yield case(f"spread-share-{share}-attempt-{attempt}", "A retry-after is waited for plus U[0, spread x "
                   "retry-after], a draw of its own.", short, NONE, seed=seed, attempt=attempt,
                   kind="rate_limit", hint="10s", retry_after={"spread": share})
    yield case("spread-default", "The default spread is a tenth.", short, NONE, seed=10, kind="rate_limit", hint="30s")
    yield case("spread-floors", "The width of the spread is floored: a tenth of 10.000000009 s.", short, NONE, seed=12,
               kind="rate_limit", hint="10000000009ns")
    yield case("spread-past-max", "`retry_after.max` compares the raw value: the spread may go beyond it.", short, NONE,
               seed=14, kind="rate_limit", hint="60s", retry_after={"max": "60s", "spread": 0.1})
    yield case("spread-beside-jitter", "The backoff's jitter and the spread are two draws; the larger wait is taken.",
               shape("constant", "10s"), FULL, seed=15, kind="rate_limit", hint="5s")


def one_ns_seed(wanted):
    """The first seed whose draw from U[0, 1] is the wanted end."""
    return next(seed for seed in range(64) if draw(seed, 1, JITTER, 0, 1) == wanted)


# Writing -----------------------------------------------------------------------------------------------------------
def pretty(value, depth=0, key=""):
    """JSON on one line where it fits in 118 columns, else one entry a line; steps always one a line."""
    line = json.dumps(value, ensure_ascii=False)
    steps = isinstance(value, list) and value and isinstance(value[0], dict) and "do" in value[0]
    fits = depth >= 3 and not steps and depth + len(key) + len(line) < 118
    if fits or not isinstance(value, (dict, list)) or not value:
        return key + line
    pad = " " * (depth + 1)
    if isinstance(value, dict):
        parts = [pretty(v, depth + 1, json.dumps(k) + ": ") for k, v in value.items()]
    else:
        parts = [pretty(v, depth + 1) for v in value]
    ends = "{}" if isinstance(value, dict) else "[]"
    return key + ends[0] + "\n" + ",\n".join(pad + part for part in parts) + "\n" + pad[:-1] + ends[1]


def file(about, cases):
    return pretty({"topic": "delay", "about": about, "cases": list(cases)}) + "\n"


def main():
    seeds = "A seed past 2^53 is written as a decimal string."
    files = {
        "20-backoff.json": file("Curves, caps, overrides by kind, and the larger of backoff and retry-after. Computed "
                                "by derive.py from the rules.", backoff_cases()),
        "21-jitter.json": file("Jitter kinds, the frozen generator, decorrelated waits and the spread on a "
                               "retry-after. Computed by derive.py from the rules. " + seeds, jitter_cases()),
    }
    here = pathlib.Path(__file__).parent
    for name, content in files.items():
        if "--check" in sys.argv:
            assert (here / name).read_text() == content, f"{name} differs from what the rules give"
        else:
            (here / name).write_text(content)


if __name__ == "__main__":
    main()
