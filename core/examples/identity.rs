//! Random scripts, generated once from a seed, and what the core makes of them: every binding plays the same scripts,
//! and its stream of actions, snapshots and records must be the same to the byte. One hash each shows it.
//!
//! `identity COUNT FILE` writes the scripts to a file, one JSON object a line, and prints the hash of the stream. A
//! script is `{policy, seed, guards, run, steps}`, a step `{at, do, ...}`: the words of `play` below, which is short so
//! that every language can have its own.

use std::fmt::Write as _;

use reprieve::guard::{self, Guards, Run, RunConfig};
use reprieve::policy::Input;
use reprieve::trace::Ids;
use reprieve::{Action, Call, Kind, Outcome, Policy, Restore, Span, Step};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Any number would do; this one stays.
const SEED: u64 = 20_261_129;

fn main() {
    let mut args = std::env::args().skip(1);
    let count: u64 = args.next().and_then(|n| n.parse().ok()).expect("usage: identity COUNT FILE");
    let file = args.next().expect("usage: identity COUNT FILE");
    let (mut scripts, mut hash) = (String::new(), Sha256::new());
    for i in 0..count {
        let script = generate(&mut Random(SEED.wrapping_add(i)));
        hash.update(play(&script).as_bytes());
        let _ = writeln!(scripts, "{script}");
    }
    std::fs::write(&file, scripts).expect("the file can be written");
    let mut hex = String::new();
    for byte in hash.finalize() {
        let _ = write!(hex, "{byte:02x}");
    }
    println!("{count} scripts, rust     {hex}");
}

/// SplitMix64: small, and good enough to choose with.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[usize::try_from(self.below(choices.len() as u64)).unwrap_or(0)]
    }
}

/// One machine, what it shares with others, and the stream of what it said.
struct Player {
    call: Call,
    guards: Option<Guards>,
    run: Option<Run>,
    stream: String,
}

/// Plays a script, and answers its stream.
fn play(script: &Value) -> String {
    let mut player = Player::new(script);
    for step in script["steps"].as_array().into_iter().flatten() {
        player.step(step);
    }
    player.end()
}

impl Player {
    fn new(script: &Value) -> Player {
        let written = Input::parse(&script["policy"].to_string()).expect("a policy is JSON");
        let policy = Policy::default().replace(&written, None).expect("the generator writes valid policies");
        let seed = script["seed"].as_str().and_then(|s| s.parse().ok()).expect("a seed is decimal text");
        let run = script.get("run").map(|run| Run::new(RunConfig::from_json(&run.to_string()).expect("a run")));
        let guards = (script["guards"] == true).then(Guards::new);
        let mut call = Call::new(policy, seed).recorded();
        call = call.with_ids(Ids { trace_id: "0123456789abcdef0123456789abcdef".into(), ..Ids::default() });
        if guards.is_some() || run.is_some() {
            call = call.guarded();
        }
        Player { call, guards, run, stream: String::new() }
    }

    /// `{at, do: "begin" | "cancel" | "outcome" | "snapshot"}`; an outcome has `attempt` and `outcome`, a snapshot is
    /// taken at `wall` and goes on at `wall_later`, both in ms.
    fn step(&mut self, step: &Value) -> Option<Action> {
        let now = Span::from_nanos(step["at"].as_u64().expect("at is in nanoseconds"));
        let action = match step["do"].as_str().expect("do is a word") {
            "begin" => self.call.begin(now).ok().map(|s| self.follow(now, s)),
            "cancel" => {
                let next = self.call.cancel(now);
                Some(self.follow(now, next))
            }
            "outcome" => {
                let outcome = Outcome::from_json(&step["outcome"].to_string(), self.call.policy()).expect("an outcome");
                let number = u32::try_from(step["attempt"].as_u64().unwrap_or(0)).unwrap_or(0);
                self.call.on_outcome(now, number, outcome).ok().map(|s| self.follow(now, s))
            }
            _ => Some(self.snapshot(now, step)),
        };
        let said = action.as_ref().map_or_else(|| "misuse".into(), |a| a.to_json(self.call.policy()));
        self.stream.push_str(&said);
        self.stream.push('\n');
        action
    }

    fn snapshot(&mut self, now: Span, step: &Value) -> Action {
        let wall = |name: &str| step[name].as_u64().unwrap_or(0);
        let text = self.call.snapshot(now, wall("wall"));
        self.stream.push_str(&text);
        self.stream.push('\n');
        let guarded = self.guards.is_some() || self.run.is_some();
        let options = Restore { count_suspended: step["count_suspended"] != false, guarded, ..Restore::default() };
        let (call, next) = Call::restore(&text, now, wall("wall_later"), options).expect("its own snapshot");
        self.call = call;
        self.follow(now, next)
    }

    fn follow(&mut self, now: Span, mut step: Step) -> Action {
        loop {
            guard::settle(now, self.guards.as_mut(), self.run.as_mut(), self.call.policy(), &step.settles);
            let Action::Ask(asks) = &step.action else { break };
            let answer = guard::answer(now, self.guards.as_mut(), self.run.as_mut(), asks);
            step = self.call.on_answer(now, answer).expect("an answer was due");
        }
        step.action
    }

    fn end(mut self) -> String {
        for line in self.call.lines() {
            self.stream.push_str(&line);
            self.stream.push('\n');
        }
        self.stream
    }
}

/// A script that makes sense most of the time: each step is chosen knowing what the one before it answered.
fn generate(random: &mut Random) -> Value {
    let mut script = json!({
        "policy": policy(random),
        "seed": random.next().to_string(),
        "guards": random.chance(30),
        "steps": [],
    });
    if random.chance(15) {
        script["run"] = json!({"attempts": 1 + random.below(6)});
    }
    let mut player = Player::new(&script);
    let (mut steps, mut at, mut next) = (Vec::new(), random.below(1_000_000_000), "begin");
    for _ in 0..3 + random.below(22) {
        let mut step = json!({"at": at, "do": if random.chance(3) { "cancel" } else { next }});
        if step["do"] == "outcome" {
            let attempt = u64::from(player.call.attempts());
            step["attempt"] = (if random.chance(96) { attempt } else { random.below(attempt + 2) }).into();
            step["outcome"] = outcome(random);
        }
        let action = player.step(&step);
        steps.push(step);
        if player.call.ended().is_some() && random.chance(60) {
            break;
        }
        (next, at) = follow_up(random, action.as_ref(), at, next);
        if random.chance(6) {
            let wall = 1_700_000_000_000 + random.below(1_000);
            let step = json!({"at": at, "do": "snapshot", "wall": wall, "wall_later": wall + random.below(5_000),
                              "count_suspended": random.chance(70)});
            let action = player.step(&step);
            steps.push(step);
            (next, at) = follow_up(random, action.as_ref(), at, next);
        }
    }
    script["steps"] = steps.into();
    script
}

fn follow_up(random: &mut Random, action: Option<&Action>, at: u64, last: &'static str) -> (&'static str, u64) {
    match action {
        Some(Action::Attempt { .. } | Action::Pending) => ("outcome", at + random.below(20_000_000_000)),
        Some(Action::Retry { after, .. }) => {
            let late = if random.chance(80) { 0 } else { random.below(2_000_000_000) };
            let early = if random.chance(10) { after.as_nanos() / 2 } else { 0 };
            ("begin", at + after.as_nanos() - early + late)
        }
        Some(Action::Fallback { .. }) => ("begin", at),
        _ => (if last == "begin" { "outcome" } else { "begin" }, at + random.below(1_000_000)),
    }
}

fn policy(random: &mut Random) -> Value {
    let kinds = ["constant", "linear", "exponential", "decorrelated"];
    let kind = *random.of(&kinds);
    let base = random.below(2_000);
    let mut backoff =
        json!({"kind": kind, "base": format!("{base}ms"), "max": format!("{}ms", base + random.below(9_000))});
    if kind == "exponential" {
        backoff["factor"] = json!(f64::from(u32::try_from(1_000 + random.below(2_500)).unwrap_or(2_000)) / 1e3);
    }
    let mut policy = json!({
        "max_attempts": 1 + random.below(5),
        "total_timeout": format!("{}ms", 1_000 + random.below(120_000)),
        "backoff": backoff,
        "retry_after": {"max": format!("{}s", random.below(90)), "spread": f64::from(u32::try_from(random.below(101)).unwrap_or(0)) / 100.0},
        "targets": *random.of(&[r#"[{"id":"primary"}]"#, r#"[{"id":"primary","account":"a"},{"id":"backup","max_attempts":2}]"#,
            r#"[{"id":"a","upstream":"u","attempt_timeout":"5s"},{"id":"b","upstream":"u"},{"id":"c","account":"x"}]"#]),
    });
    policy["targets"] = policy["targets"].as_str().and_then(|t| serde_json::from_str(t).ok()).unwrap_or_default();
    if kind != "decorrelated" {
        policy["jitter"] = random
            .of(&[
                json!({"kind": "none"}),
                json!({"kind": "full"}),
                json!({"kind": "lower_bounded", "ratio": 0.3}),
                json!({"kind": "proportional", "ratio": 0.2}),
                json!({"kind": "additive", "ratio": 0.7}),
            ])
            .clone();
    }
    let maybe: [(&str, Value); 9] = [
        ("max_total_wait", format!("{}ms", random.below(20_000)).into()),
        ("max_attempts_total", (1 + random.below(6)).into()),
        ("attempt_timeout", format!("{}ms", 1 + random.below(30_000)).into()),
        ("min_attempt_time", format!("{}ms", random.below(1_000)).into()),
        ("side_effects", "unsafe".into()),
        ("requires_human_fallback", true.into()),
        ("breaker", json!({"consecutive_failures": 1 + random.below(3), "open_for": "5s"})),
        ("cooldown", json!({})),
        ("retry_budget", json!({"capacity": 1 + random.below(60)})),
    ];
    for (name, value) in maybe {
        if random.chance(25) {
            policy[name] = value;
        }
    }
    let stream = random.of(&["before_first_item", "buffered", "restart", "resume"]);
    policy["stream"] = json!({"mode": stream});
    policy
}

fn outcome(random: &mut Random) -> Value {
    if random.chance(15) {
        return json!({"success": {}, "usage": {"input_tokens": random.below(1_000), "cost": 0.001}});
    }
    let kinds: Vec<Kind> = Kind::all().collect();
    let mut outcome = if random.chance(70) {
        let likely = [Kind::Timeout, Kind::RateLimit, Kind::Overloaded, Kind::ServerError, Kind::Billing];
        let kind = if random.chance(80) { *random.of(&likely) } else { *random.of(&kinds) };
        let mut failure = json!({"kind": kind.name(), "message": "call 13812345678, key sk-abcdefgh12345678"});
        if random.chance(30) {
            failure["retry_after_ns"] = (random.below(90) * 1_000_000_000 + random.below(1_000) * 1_000_000).into();
        }
        json!({"failure": failure})
    } else {
        let status = *random.of(&[400, 401, 403, 404, 408, 409, 429, 500, 502, 503, 529]);
        let body = json!({"error": {"code": *random.of(&["insufficient_quota", "rate_limit_exceeded", "x"]), "message": "Please try again in 1.5s."}});
        json!({"evidence": {"status": status, "headers": [["Retry-After", random.below(20).to_string()]], "body": body}})
    };
    if random.chance(10) {
        outcome["delivered"] = random.below(3).into();
        outcome["delivering"] = (random.below(3_000) * 1_000_000).into();
    }
    if random.chance(5) {
        outcome["retry_if"] = random.chance(50).into();
    }
    if random.chance(5) {
        outcome["backoff"] = (random.below(30) * 1_000_000_000).into();
    }
    outcome
}
