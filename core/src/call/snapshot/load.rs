//! Reading a call that was written down, and checking that it can be one.

use super::fields::Snapshot;
use super::{SnapshotError, VERSION};
use crate::action::RetryReason;
use crate::call::{Asked, Call, State};
use crate::json::{Json, at, form};
use crate::{ConfigError, Policy};

/// What the text says, checked.
pub(super) fn snapshot(tree: &Json) -> Result<Snapshot, SnapshotError> {
    let found = tree.get("version").and_then(Json::as_u64).unwrap_or(0);
    if found != u64::from(VERSION) {
        return Err(SnapshotError::Version { found });
    }
    let policy = tree.get("policy").ok_or_else(|| damaged("it has no policy"))?;
    let policy = Policy::default().replace(policy, None)?;
    let mut snapshot = Snapshot { call: Call::new(policy, 0), wall_ms: 0, check: 0 };
    at::read("snapshot", tree, None, &mut |at| form::read(at, &mut snapshot))?;
    check(&mut snapshot.call)?;
    Ok(snapshot)
}

fn check(call: &mut Call) -> Result<(), SnapshotError> {
    let targets = call.policy.targets.len();
    let known = |target: usize| target < targets;
    let refers_to_known = known(call.target)
        && call.receipts.iter().all(|receipt| known(receipt.target))
        && call.returns.iter().all(|(target, _)| known(*target));
    if !refers_to_known {
        return Err(damaged("it speaks of a target that its policy does not have"));
    }
    if call.on_target.attempts.saturating_add(call.on_target.repaired) > call.attempts
        || call.written.receipts > call.receipts.len()
    {
        return Err(damaged("its counts do not agree"));
    }
    if call.siblings().iter().any(|sibling| !(1..=call.attempts).contains(&sibling.number)) {
        return Err(damaged("it speaks of attempts that were never issued"));
    }
    if let State::Asking(Asked::Repeat { reason: RetryReason::Kind(kind), .. }) = &mut call.state {
        let failure = call.receipts.last().and_then(|r| r.failure.as_ref());
        *kind = failure.ok_or_else(|| damaged("it asks to repeat an attempt that it has no receipt of"))?.kind;
    }
    Ok(())
}

/// What is not as it was written.
impl From<Box<ConfigError>> for SnapshotError {
    fn from(error: Box<ConfigError>) -> SnapshotError {
        SnapshotError::Damaged(error.text())
    }
}

fn damaged(what: &str) -> SnapshotError {
    SnapshotError::Damaged(what.to_owned())
}
