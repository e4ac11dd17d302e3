//! How a call leaves a target, for the next one or for good: what its guards are told, and how it ends.

use super::{Call, OnTarget, State};
use crate::Span;
use crate::action::{Action, Disposition, Redeliver, Step, Stop, StopReason};
use crate::guard::{Settle, Verdict};
use crate::policy::StreamMode;
use crate::trace::Decision;

impl Call {
    /// Goes to the next target where there is one and an attempt on it may start; else stops, now.
    pub(super) fn leave(&mut self, reason: StopReason) -> Step {
        let next = self.target + 1;
        if next >= self.policy.targets.len() || self.total_reached() || !self.time_allows() {
            return self.stop(reason);
        }
        let redeliver = self.redeliver();
        self.leave_target();
        self.close(Decision::Fallback, Some(reason.name()), None);
        self.target = next;
        self.state = State::Ready;
        self.event("fallback", |event| event.reason = Some(reason.name()));
        self.step(Action::Fallback { target: next, after: Span::ZERO, reason, redeliver })
    }

    /// Ends the call without success.
    pub(super) fn stop(&mut self, reason: StopReason) -> Step {
        let stop = self.stopping(reason);
        self.cancelled |= reason == StopReason::Cancelled;
        self.leave_target();
        self.close(Decision::Stop, Some(reason.name()), None);
        self.state = State::Ended(Some(stop));
        self.event("gave_up", |event| {
            event.reason = Some(reason.name());
            event.resume_in_ms = stop.resume_in.map(Span::as_millis_rounded);
            event.disposition = Some(stop.disposition.name());
        });
        self.step(Action::Stop(stop))
    }

    /// A stop with this reason, if the call stopped now.
    pub(super) fn stopping(&self, reason: StopReason) -> Stop {
        let every = (1u64 << self.policy.targets.len()) - 1;
        let everywhere = u64::from(self.spoken) & every == every;
        let human = self.policy.requires_human_fallback && everywhere && reason != StopReason::Cancelled;
        let disposition = if human { Disposition::Human } else { Disposition::Failed };
        let resume_in = self.returns.iter().map(|(_, moment)| moment.minus(self.time)).min();
        Stop { reason, disposition, resume_in }
    }

    /// Leaves the current target for good: its one verdict, its probe, a retry that was paid and never began.
    pub(super) fn leave_target(&mut self) {
        let verdict = if self.on_target.fault { Verdict::Failed } else { Verdict::Released };
        self.verdict(verdict);
        self.repay();
        self.on_target = OnTarget::default();
    }

    /// The call's word on the target's breaker and bench, where it holds a permit of theirs.
    pub(super) fn verdict(&mut self, verdict: Verdict) {
        let target = self.target;
        if let Some(permit) = self.on_target.breaker.take() {
            self.tell(Settle::Breaker { target, permit, verdict });
        }
        if let Some(permit) = self.on_target.bench.take() {
            self.tell(Settle::Bench { target, permit, verdict });
        }
    }

    /// Gives back what was paid for a retry that never began.
    pub(super) fn repay(&mut self) {
        let cost = std::mem::take(&mut self.owed);
        if cost > 0 {
            self.tell(Settle::Return { target: self.target, cost });
        }
    }

    /// Remembers when a target may be back; a failure without a word about it forgets what was said before.
    pub(super) fn note_return(&mut self, target: usize, resume_in: Option<Span>) {
        self.returns.retain(|(t, _)| *t != target);
        if let Some(rest) = resume_in {
            self.returns.push((target, self.time.plus(rest)));
        }
    }

    /// What a stream's consumer or function is told before its items come again.
    pub(super) fn redeliver(&self) -> Option<Redeliver> {
        let delivered = self.receipts.last().map(|r| r.delivered).filter(|n| *n > 0)?;
        match self.policy.stream.mode {
            StreamMode::Restart => Some(Redeliver::Discard(delivered)),
            StreamMode::Resume => Some(Redeliver::Resume(delivered)),
            StreamMode::BeforeFirstItem | StreamMode::Buffered => None,
        }
    }
}
