//! `answer` and `settle` over a whole guard set: what the tests of it share.

mod answers;
mod at_rest;
mod breakers;
mod retries;

use super::{
    Answer, Asks, Breaker, BreakerState, Grant, Guards, Purpose, Refusal, RefusedBy, RetryBudget, Run, RunConfig,
    Settle, Usage, Verdict, answer, settle,
};
use crate::failure::Kind;
use crate::policy::testing::policy;
use crate::policy::{BreakerConfig, CooldownConfig, Fields, Millionths, RetryBudgetConfig, ShedConfig, Target, Trip};
use crate::{Policy, Span};

const PRIMARY: usize = 0;
const BACKUP: usize = 1;

/// Two targets of one account, at different upstreams, and every guard configured.
fn guarded(change: impl FnOnce(&mut Fields)) -> Policy {
    policy(|fields| {
        let at = |id: &str, upstream: &str| Target {
            account: Some("acme".to_owned()),
            upstream: Some(upstream.to_owned()),
            ..Target::named(id)
        };
        fields.targets = vec![at("primary", "openai"), at("backup", "azure")];
        fields.breaker = Some(BreakerConfig {
            trip: Trip::Consecutive(2),
            open_for: secs(30),
            open_for_max: secs(300),
            probe_lease: secs(60),
        });
        fields.retry_budget =
            Some(RetryBudgetConfig::Tokens { capacity: 20, retry_cost: 14, throttle_cost: 5, refund: 1 });
        fields.cooldown = Some(CooldownConfig { max: secs(300), bench: secs(300) });
        fields.shed = Some(ShedConfig { queue_depth: Some(100), cost_ratio: None, below_priority: 6 });
        change(fields);
    })
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

fn secs(s: u64) -> Span {
    Span::from_secs(s)
}

fn ask(policy: &Policy, target: usize, purpose: Purpose) -> Asks {
    Asks { policy: policy.clone(), target, purpose }
}

fn admit(guards: &mut Guards, policy: &Policy, target: usize, at: u64) -> Result<Grant, Refusal> {
    result(answer(secs(at), Some(guards), None, &ask(policy, target, Purpose::Admit { first: true })))
}

fn result(answer: Answer) -> Result<Grant, Refusal> {
    match answer {
        Answer::Granted(grant) => Ok(grant),
        Answer::Refused(refusal) => Err(refusal),
    }
}

fn fail(guards: &mut Guards, policy: &Policy, target: usize, at: u64, kind: Kind, retry_after: Option<Span>) {
    settle(secs(at), Some(guards), None, policy, &[Settle::Failed { target, kind, retry_after }]);
}

fn verdict(guards: &mut Guards, policy: &Policy, target: usize, at: u64, grant: Grant, verdict: Verdict) {
    let permit = grant.breaker.expect("a breaker is configured");
    settle(secs(at), Some(guards), None, policy, &[Settle::Breaker { target, permit, verdict }]);
}

/// Opens the breaker of a target's upstream.
fn open(guards: &mut Guards, policy: &Policy, target: usize, at: u64) {
    for _ in 0..2 {
        let grant = admit(guards, policy, target, at).expect("closed");
        verdict(guards, policy, target, at, grant, Verdict::Failed);
    }
}
