//! Guards under random interleavings: what must hold whatever the order of events. Every failure names its seed.

use std::collections::BTreeMap;

use reprieve::guard::{Breaker, BreakerState, Cooldown, Permit, RetryBudget, Run, RunConfig, Usage, Verdict};
use reprieve::policy::{BreakerConfig, CooldownConfig, Millionths, RetryBudgetConfig, Trip};
use reprieve::{Kind, Span};

const SEEDS: u64 = 60;
const STEPS: usize = 400;

/// A small generator, so that a seed is a test case on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).expect("small")]
    }

    fn take<T>(&mut self, items: &mut Vec<T>) -> Option<T> {
        let len = items.len() as u64;
        (len > 0).then(|| items.swap_remove(usize::try_from(self.below(len)).expect("small")))
    }
}

fn breaker_config(random: &mut Random) -> BreakerConfig {
    let consecutive = Trip::Consecutive(3);
    let ratio = Trip::Ratio { window: Span::from_secs(10), min_calls: 4, ratio: Millionths(500_000) };
    BreakerConfig {
        trip: random.pick(&[consecutive, ratio]),
        open_for: Span::from_secs(3),
        open_for_max: Span::from_secs(10),
        probe_lease: Span::from_secs(5),
    }
}

/// A breaker is asked, told and forgotten about at random. `probe` is the probe that holds the lease.
#[test]
fn a_breaker_never_deadlocks_nor_probes_twice_in_a_lease() {
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let config = breaker_config(&mut random);
        let (mut breaker, mut now) = (Breaker::default(), Span::ZERO);
        let (mut out, mut probe, mut generation) = (Vec::<Permit>::new(), None::<Permit>, 0);
        for step in 0..STEPS {
            now = now.plus(Span::from_millis(random.below(1_500)));
            if random.below(2) == 0 {
                let before = breaker.clone();
                match breaker.admit(now, &config) {
                    Ok(permit) => {
                        assert!(permit.generation >= generation, "seed {seed} step {step}: a generation went back");
                        generation = permit.generation;
                        let leased = probe.filter(|held| permit.probe && held.generation == generation);
                        let over = leased.is_none_or(|held| now >= held.at.plus(config.probe_lease));
                        assert!(over, "seed {seed} step {step}: two probes in a lease");
                        probe = Some(permit).filter(|permit| permit.probe).or(probe);
                        out.push(permit);
                    }
                    Err(refusal) => {
                        let back = now.plus(refusal.resume_in.expect("a breaker knows when"));
                        assert_eq!(breaker, before, "seed {seed} step {step}: a refusal changed it");
                        assert!(breaker.clone().admit(back, &config).is_ok(), "seed {seed} step {step}: not back");
                        let nearly = back.minus(Span::from_nanos(1));
                        assert!(breaker.clone().admit(nearly, &config).is_err(), "seed {seed} step {step}: too early");
                    }
                }
            } else if let Some(permit) = random.take(&mut out) {
                let verdict = random.pick(&[Verdict::Success, Verdict::Failed, Verdict::Failed, Verdict::Released]);
                let before = breaker.clone();
                // One in five is lost: its process was killed.
                if random.below(5) > 0 {
                    breaker.settle(now, &config, permit, verdict);
                    probe = probe.filter(|held| *held != permit);
                }
                let late = permit.generation < generation;
                assert!(!late || breaker == before, "seed {seed} step {step}: a late verdict changed it");
            }
            // Whatever was lost, the longest opening or one lease later somebody may pass.
            let later = now.plus(config.open_for_max.max(config.probe_lease));
            assert!(breaker.clone().admit(later, &config).is_ok(), "seed {seed} step {step}: deadlocked");
            breaker = stored(&breaker);
        }
    }
}

/// A closed breaker that sees only successes stays closed; one that sees only failures opens.
#[test]
fn a_breaker_follows_a_steady_service() {
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let config = breaker_config(&mut random);
        for (verdict, state) in [(Verdict::Success, BreakerState::Closed), (Verdict::Failed, BreakerState::Open)] {
            let (mut breaker, mut now) = (Breaker::default(), Span::ZERO);
            while breaker.state(now) == BreakerState::Closed && now < Span::from_secs(60) {
                now = now.plus(Span::from_millis(random.below(500)));
                let permit = breaker.admit(now, &config).expect("closed");
                breaker.settle(now, &config, permit, verdict);
            }
            assert_eq!(breaker.state(now), state, "seed {seed} {verdict:?}");
        }
    }
}

#[test]
fn a_bucket_stays_between_empty_and_full() {
    let config = RetryBudgetConfig::Tokens { capacity: 60, retry_cost: 14, throttle_cost: 5, refund: 1 };
    for seed in 0..SEEDS {
        let (mut random, mut budget, mut model) = (Random(seed), RetryBudget::default(), 60_u64);
        for step in 0..STEPS {
            match random.below(4) {
                0 | 1 => {
                    let kind = random.pick(&[Kind::Timeout, Kind::RateLimit]);
                    let cost = if kind == Kind::RateLimit { 5 } else { 14 };
                    let granted = budget.charge(Span::ZERO, &config, kind);
                    assert_eq!(granted.is_ok(), model >= cost, "seed {seed} step {step}");
                    model -= granted.map_or(0, |charge| charge.before - charge.after);
                }
                2 => {
                    budget.refund(&config);
                    model = (model + 1).min(60);
                }
                _ => {
                    let cost = random.pick(&[5_u32, 14]);
                    budget.give_back(&config, cost);
                    model = (model + u64::from(cost)).min(60);
                }
            }
            assert_eq!(budget.tokens(Span::ZERO, &config), model, "seed {seed} step {step}");
            budget = stored(&budget);
        }
    }
}

/// The slots against a plain list of events: a slot is a second, the window is the last ten of them.
#[test]
fn a_ratio_budget_agrees_with_a_plain_list() {
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let ratio = random.pick(&[200_000, 333_333, 600_000, 700_000, 900_000, 1_000_000]);
        let floor = random.pick(&[0_u64, 1]);
        let (min_per_second, window) = (u32::try_from(floor).expect("small"), Span::from_secs(10));
        let config = RetryBudgetConfig::Ratio { ratio: Millionths(ratio), min_per_second, window };
        let (mut budget, mut now) = (RetryBudget::default(), Span::ZERO);
        let (mut requests, mut retries) = (Vec::new(), Vec::new());
        for step in 0..STEPS {
            now = now.plus(Span::from_millis(random.below(400)));
            let second = now.as_nanos() / 1_000_000_000;
            let inside = |events: &[u64]| events.iter().filter(|at| **at + 10 > second).count() as u64;
            let allowed = inside(&requests) * ratio + floor * 10 * 1_000_000;
            let left = allowed.saturating_sub(inside(&retries) * 1_000_000) / 1_000_000;
            assert_eq!(budget.tokens(now, &config), left, "seed {seed} step {step}");
            if random.below(2) == 0 {
                budget.request(now, &config);
                requests.push(second);
            } else {
                let granted = budget.charge(now, &config, Kind::Timeout).is_ok();
                assert_eq!(granted, left > 0, "seed {seed} step {step}");
                retries.extend(granted.then_some(second));
            }
            budget = stored(&budget);
        }
    }
}

#[test]
fn a_hold_ends_when_it_says_and_a_bench_has_one_probe() {
    let (config, lease) = (CooldownConfig { max: Span::from_secs(20), bench: Span::from_secs(8) }, Span::from_secs(5));
    for seed in 0..SEEDS {
        let (mut random, mut cooldown, mut now) = (Random(seed), Cooldown::default(), Span::ZERO);
        let (mut out, mut probes) = (Vec::new(), BTreeMap::<&str, Permit>::new());
        for step in 0..STEPS {
            now = now.plus(Span::from_millis(random.below(2_000)));
            let (account, upstream) = (random.pick(&["a", "b"]), random.pick(&["x", "y"]));
            match random.below(3) {
                0 => {
                    let kind = random.pick(&[Kind::RateLimit, Kind::Overloaded, Kind::Billing, Kind::ServerError]);
                    let retry_after = random.pick(&[None, Some(Span::ZERO), Some(Span::from_secs(3))]);
                    cooldown.failed(now, &config, account, upstream, kind, retry_after);
                }
                1 => match cooldown.admit(now, account, upstream, lease) {
                    Ok(Some(permit)) => {
                        let held = probes.insert(account, permit).filter(|held| held.generation == permit.generation);
                        let over = held.is_none_or(|held| now >= held.at.plus(lease));
                        assert!(over, "seed {seed} step {step}: two probes in a lease");
                        out.push((account, permit));
                    }
                    Ok(None) => {}
                    Err(refusal) => {
                        let back = now.plus(refusal.resume_in.expect("a hold knows when"));
                        assert!(cooldown.held(back, account, upstream, lease).is_none(), "seed {seed} step {step}");
                    }
                },
                _ => {
                    if let Some((account, permit)) = random.take(&mut out) {
                        let verdict = random.pick(&[Verdict::Success, Verdict::Failed, Verdict::Released]);
                        cooldown.settle(now, account, permit, verdict);
                        probes.retain(|_, held| *held != permit);
                    }
                }
            }
        }
    }
}

#[test]
fn a_run_conserves_what_it_counts() {
    for seed in 0..SEEDS {
        let mut random = Random(seed);
        let config =
            RunConfig { attempts: Some(200), tokens: Some(3_000), estimate_tokens: 40, ..RunConfig::default() };
        let mut run = Run::new(config);
        let (mut attempts, mut flying, mut tokens, mut unknown) = (0, 0, 0, 0);
        for step in 0..STEPS {
            match random.below(4) {
                0 | 1 => {
                    let fits = attempts < 200 && tokens + 40 * (flying + 1) <= 3_000;
                    assert_eq!(run.would_admit(Span::ZERO).is_ok(), fits, "seed {seed} step {step}");
                    assert_eq!(run.admit(Span::ZERO).is_ok(), fits, "seed {seed} step {step}");
                    (attempts, flying) = (attempts + u64::from(fits), flying + u64::from(fits));
                }
                2 if flying > 0 => {
                    let known = random.below(3) > 0;
                    let used = random.below(100);
                    let usage = Usage { input_tokens: Some(used), output_tokens: Some(0), ..Usage::default() };
                    run.used(known.then_some(&usage));
                    flying -= 1;
                    tokens += if known { used } else { 40 };
                    unknown += u64::from(!known);
                }
                3 => {
                    run.not_started();
                    (attempts, flying) = if flying > 0 { (attempts - 1, flying - 1) } else { (attempts, flying) };
                }
                _ => {}
            }
            run = stored(&run);
            let report: serde_json::Value = serde_json::from_str(&run.report()).expect("JSON");
            let seen = [&report["attempts"]["used"], &report["attempts"]["in_flight"], &report["tokens"]["used"]];
            assert_eq!(seen, [attempts, flying, tokens], "seed {seed} step {step}");
            assert_eq!(report["tokens"]["reserved"], 40 * flying, "seed {seed} step {step}");
            assert_eq!(report["unknown_usage"], unknown, "seed {seed} step {step}");
        }
    }
}

/// Extreme numbers neither panic nor turn time back.
#[test]
fn extremes_saturate() {
    let config = BreakerConfig {
        trip: Trip::Ratio { window: Span::ZERO, min_calls: 0, ratio: Millionths(u64::MAX) },
        open_for: Span::MAX,
        open_for_max: Span::MAX,
        probe_lease: Span::MAX,
    };
    let mut breaker = Breaker::default();
    let budget = RetryBudgetConfig::Ratio { ratio: Millionths(u64::MAX), min_per_second: u32::MAX, window: Span::MAX };
    let mut retries = RetryBudget::default();
    for now in [Span::MAX, Span::ZERO, Span::MAX] {
        let permit = breaker.admit(now, &config).expect("closed");
        breaker.settle(now, &config, permit, Verdict::Failed);
        retries.request(now, &budget);
        assert!(retries.charge(now, &budget, Kind::Timeout).is_ok());
    }
    let steep = RunConfig { tokens: Some(u64::MAX), estimate_tokens: u64::MAX, ..RunConfig::default() };
    let mut run = Run::new(steep);
    assert!(run.admit(Span::ZERO).is_ok());
    assert!(run.admit(Span::ZERO).is_err());
    run.used(Some(&Usage { input_tokens: Some(u64::MAX), output_tokens: Some(1), ..Usage::default() }));
    assert!(run.report().contains("\"tokens\":{\"used\":18446744073709551615,"), "{}", run.report());
}

/// Through its stored form and back, as between two workers.
fn stored<T: serde::Serialize + serde::de::DeserializeOwned>(machine: &T) -> T {
    let text = serde_json::to_string(machine).expect("plain state");
    serde_json::from_str(&text).expect("reads what it wrote")
}
