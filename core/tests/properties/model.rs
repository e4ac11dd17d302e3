//! What must hold of every action, whatever the policy and whatever happened before: a plain account of the past,
//! kept beside the engine.

use reprieve::policy::{SideEffects, StreamMode};
use reprieve::{Action, Category, Kind, KindSet, Outcome, Policy, RetryReason, Span, StopReason};

/// What a driver remembers of one call.
#[derive(Clone)]
pub struct Model {
    policy: Policy,
    /// The first `begin`, and the latest moment seen; a clock that goes back stands still.
    first: Span,
    latest: Span,
    delivering: Span,
    waited: Span,
    /// When the current wait is over.
    until: Span,
    attempts: u32,
    target: usize,
    on_target: u32,
    /// How the attempts on this target ended.
    kinds: Vec<Kind>,
    last: Option<Outcome>,
    cancelled: bool,
    /// The kinds that can still be repaired.
    pub repairs: KindSet,
}

impl Model {
    pub fn new(policy: Policy, now: Span) -> Model {
        Model {
            policy,
            first: now,
            latest: now,
            delivering: Span::ZERO,
            waited: Span::ZERO,
            until: now,
            attempts: 0,
            target: 0,
            on_target: 0,
            kinds: Vec::new(),
            last: None,
            cancelled: false,
            repairs: KindSet::EMPTY,
        }
    }

    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    pub fn cancelled(&mut self, now: Span) {
        self.latest = self.latest.max(now);
        self.cancelled = true;
    }

    pub fn outcome(&mut self, now: Span, outcome: &Outcome) {
        self.latest = self.latest.max(now);
        self.delivering = self.delivering.plus(outcome.delivering);
        self.kinds.extend(outcome.failure.as_ref().map(|failure| failure.kind));
        self.last = Some(outcome.clone());
    }

    /// Checks an action that was decided at `now`, and remembers it.
    pub fn action(&mut self, now: Span, action: &Action) {
        self.latest = self.latest.max(now);
        match *action {
            Action::Attempt { number, target, timeout, .. } => self.attempt(number, target, timeout),
            Action::Retry { after, reason, .. } => self.retry(after, reason),
            Action::Fallback { target, after, .. } => {
                assert_eq!((target, after), (self.target + 1, Span::ZERO));
                assert!(self.policy.max_attempts_total.is_none_or(|most| self.attempts < most));
                assert!(self.time_allows() && !self.cancelled);
                self.aim(target);
            }
            Action::Stop(stop) => {
                assert!(!self.cancelled || stop.reason == StopReason::Cancelled, "a cancelled call says so");
            }
            Action::Done => assert!(self.last.as_ref().is_some_and(|last| last.failure.is_none())),
            Action::Ask(_) | Action::Pending | Action::Ignored => unreachable!("handled where they are answered"),
        }
    }

    fn attempt(&mut self, number: u32, target: usize, timeout: Span) {
        assert_eq!(number, self.attempts + 1, "attempts are numbered one by one");
        assert!(self.latest >= self.until, "no attempt before its wait is over");
        assert!(target >= self.target, "no way back to a target");
        assert!(self.time_allows(), "no attempt after the deadline");
        assert!(timeout <= self.time_left());
        if target > self.target {
            self.aim(target);
        }
        self.attempts += 1;
        self.on_target += 1;
        let own = &self.policy.targets[target];
        assert!(self.on_target <= own.max_attempts.unwrap_or(self.policy.max_attempts));
        assert!(self.policy.max_attempts_total.is_none_or(|most| self.attempts <= most));
        assert!(own.attempt_timeout.or(self.policy.attempt_timeout).is_none_or(|most| timeout <= most));
        assert!(!self.cancelled);
    }

    fn retry(&mut self, after: Span, reason: RetryReason) {
        assert!(!self.cancelled);
        if reason == RetryReason::TooEarly {
            assert_eq!(after, self.until.minus(self.latest), "the rest of the wait, no more and no less");
            return;
        }
        let attempt = self.policy.min_attempt_time.max(Span::from_nanos(1));
        assert!(after.plus(attempt) <= self.time_left(), "no wait that leaves no time");
        self.waited = self.waited.plus(after);
        assert!(self.policy.max_total_wait.is_none_or(|most| self.waited <= most));
        self.until = self.latest.plus(after);
        match reason {
            RetryReason::Kind(kind) => self.repeats(kind, after),
            RetryReason::Repair => self.repaired(after),
            RetryReason::TooEarly | RetryReason::CoolingDown => {}
        }
    }

    /// A failed attempt whose request is repaired counts nowhere but in the call's own count.
    fn repaired(&mut self, after: Span) {
        let last = self.last.as_ref().expect("a repair follows an outcome");
        let failure = last.failure.as_ref().expect("a repair follows a failure");
        assert_eq!(after, Span::ZERO);
        assert!(self.repairs.contains(failure.kind), "once for each kind that can be");
        assert!(failure.kind.category() != Category::Control);
        let starts_over = matches!(self.policy.stream.mode, StreamMode::Restart | StreamMode::Resume);
        assert!(last.delivered == 0 || starts_over, "what was delivered stays");
        assert!(self.policy.side_effects != SideEffects::Unsafe || !failure.may_have_executed);
        self.repairs = self.repairs.without(failure.kind);
        self.kinds.pop();
        self.on_target -= 1;
    }

    /// The same target is tried again after a failure of this kind.
    fn repeats(&self, kind: Kind, after: Span) {
        let failure = self.last.as_ref().and_then(|last| last.failure.as_ref()).expect("a retry follows a failure");
        assert_eq!(kind, failure.kind);
        let cap = self.policy.curve_for(kind).max;
        match failure.retry_after {
            None => assert!(after <= cap, "{after} is past the cap, {cap}"),
            Some(wish) => {
                assert!(after >= wish, "{after} is shorter than the retry-after, {wish}");
                assert!(wish <= self.policy.retry_after.max);
                let spread = wish.plus(wish.scaled(self.policy.retry_after.spread.0, 1_000_000));
                assert!(after <= cap.max(spread));
            }
        }
        let most = self.policy.targets[self.target].max_attempts.unwrap_or(self.policy.max_attempts);
        assert!(self.on_target < most);
        let of_kind = u32::try_from(self.kinds.iter().filter(|seen| **seen == kind).count()).unwrap();
        let own = self.policy.for_kind(kind).and_then(|own| own.max_attempts);
        assert!(own.is_none_or(|most| of_kind < most));
    }

    fn aim(&mut self, target: usize) {
        self.target = target;
        self.on_target = 0;
        self.kinds.clear();
    }

    fn time_left(&self) -> Span {
        self.policy.total_timeout.plus(self.delivering).minus(self.latest.minus(self.first))
    }

    fn time_allows(&self) -> bool {
        self.time_left() > Span::ZERO && self.time_left() >= self.policy.min_attempt_time
    }
}
