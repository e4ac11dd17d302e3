//! Cooldown: what one call learned from a server holds back the others.
//!
//! | failure                                    | holds        | until                                            |
//! | ------------------------------------------ | ------------ | ------------------------------------------------ |
//! | `rate_limit` with a retry-after            | the account  | then, at most `cooldown.max`; later only extends |
//! | `overloaded` with a retry-after            | the upstream | likewise                                         |
//! | `billing` `quota_exhausted` `auth_failed`  | the account  | the retry-after, else `cooldown.bench`; a probe  |
//!
//! A bench ends with its probe's success. A probe that fails with a benching kind benches again; any other end lets
//! another probe; so does its lease, when it expires.

use serde::{Deserialize, Serialize};

use super::keyed::{Idle, Keyed};
use super::{Permit, Refusal, RefusedBy, Verdict, time_left};
use crate::Span;
use crate::failure::Kind;
use crate::policy::CooldownConfig;

/// Cooling and benches of every account and upstream. Its configuration comes with each call.
///
/// ```
/// use reprieve::guard::Cooldown;
/// use reprieve::policy::CooldownConfig;
/// use reprieve::{Kind, Span};
///
/// let config = CooldownConfig { max: Span::from_secs(300), bench: Span::from_secs(300) };
/// let mut cooldown = Cooldown::default();
/// cooldown.failed(Span::ZERO, &config, "acme", "openai", Kind::RateLimit, Some(Span::from_secs(2)));
/// let lease = Span::from_secs(60);
/// let refusal = cooldown.admit(Span::from_secs(1), "acme", "azure", lease).unwrap_err();
/// assert_eq!((refusal.resume_in, refusal.waitable), (Some(Span::from_secs(1)), true));
/// assert_eq!(cooldown.admit(Span::from_secs(2), "acme", "azure", lease), Ok(None));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cooldown {
    accounts: Keyed<Account>,
    upstreams: Keyed<Cooling>,
}

/// What is held of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Account {
    pub cooling: Cooling,
    pub bench: Bench,
}

/// A hold that ends by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cooling {
    until: Span,
}

/// A hold that ends with the success of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bench {
    /// Counts the benches that were lifted, so that a probe of an earlier one changes nothing.
    generation: u64,
    held: Option<Held>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    until: Span,
    /// When the current probe was admitted.
    probe: Option<Span>,
}

impl Cooldown {
    /// May an attempt start? The permit is that of a bench's probe.
    ///
    /// # Errors
    /// Refused while the account or the upstream is held; a bench is never waitable.
    pub fn admit(&mut self, now: Span, account: &str, upstream: &str, lease: Span) -> Result<Option<Permit>, Refusal> {
        match self.held(now, account, upstream, lease) {
            None => Ok(self.take(now, account)),
            Some(refusal) => Err(refusal),
        }
    }

    /// What a failure tells the others.
    pub fn failed(
        &mut self,
        now: Span,
        config: &CooldownConfig,
        account: &str,
        upstream: &str,
        kind: Kind,
        retry_after: Option<Span>,
    ) {
        let asked = retry_after.filter(|wait| *wait > Span::ZERO);
        match (kind, asked) {
            (Kind::RateLimit, Some(wait)) => {
                self.accounts.with(account, now, |held| held.cooling.extend(now, wait.min(config.max)));
            }
            (Kind::Overloaded, Some(wait)) => {
                self.upstreams.with(upstream, now, |cooling| cooling.extend(now, wait.min(config.max)));
            }
            (Kind::Billing | Kind::QuotaExhausted | Kind::AuthFailed, _) => {
                self.accounts.with(account, now, |held| held.bench.hold(now, asked.unwrap_or(config.bench)));
            }
            _ => {}
        }
    }

    /// The end of a bench's probe.
    pub fn settle(&mut self, now: Span, account: &str, permit: Permit, verdict: Verdict) {
        self.accounts.with(account, now, |held| held.bench.settle(permit, verdict));
    }

    /// What refuses now, if anything does: the longest hold, and a bench before a mere cooling.
    #[must_use]
    pub fn held(&self, now: Span, account: &str, upstream: &str, lease: Span) -> Option<Refusal> {
        let account = self.accounts.get(account);
        let bench = account.and_then(|held| held.bench.held(now, lease));
        let limited = account.and_then(|held| held.cooling.held(now));
        let overloaded = self.upstreams.get(upstream).and_then(|cooling| cooling.held(now));
        let resume_in = bench.max(limited).max(overloaded);
        resume_in.map(|_| Refusal { by: RefusedBy::CoolingDown, resume_in, waitable: bench.is_none() })
    }

    /// Nothing holds the account or the upstream, nor waits for a probe.
    pub(super) fn is_calm(&self, now: Span, account: &str, upstream: &str) -> bool {
        self.accounts.get(account).is_none_or(|held| held.is_idle(now))
            && self.upstreams.get(upstream).is_none_or(|cooling| cooling.is_idle(now))
    }

    /// The account is benched, or being probed.
    pub(super) fn is_benched(&self, account: &str) -> bool {
        self.accounts.get(account).is_some_and(|held| held.bench.is_held())
    }

    /// A probe's permit if the account is benched, once [`Cooldown::held`] has answered `None`.
    pub(super) fn take(&mut self, now: Span, account: &str) -> Option<Permit> {
        self.accounts.with(account, now, |held| held.bench.take(now))
    }

    /// Every account and upstream that is held, for people.
    pub(super) fn entries(&self) -> (&Keyed<Account>, &Keyed<Cooling>) {
        (&self.accounts, &self.upstreams)
    }
}

impl Cooling {
    /// Holds for `wait` from now; never shortens.
    pub fn extend(&mut self, now: Span, wait: Span) {
        self.until = self.until.max(now.plus(wait));
    }

    /// How long it goes on holding; `None` when it does not.
    #[must_use]
    pub fn held(&self, now: Span) -> Option<Span> {
        Some(self.until.minus(now)).filter(|left| *left > Span::ZERO)
    }
}

impl Bench {
    /// Benches for `wait` from now, or again; never shortens.
    pub fn hold(&mut self, now: Span, wait: Span) {
        let until = now.plus(wait);
        self.held = Some(match self.held {
            None => Held { until, probe: None },
            Some(held) => Held { until: held.until.max(until), ..held },
        });
    }

    /// How long it goes on refusing, the lease of a probe included; `None` when it would admit.
    #[must_use]
    pub fn held(&self, now: Span, lease: Span) -> Option<Span> {
        let held = self.held?;
        let probing = held.probe.and_then(|at| time_left(now, at, lease));
        self.benched(now).max(probing)
    }

    /// The end of a probe.
    pub fn settle(&mut self, permit: Permit, verdict: Verdict) {
        let Some(held) = self.held.as_mut().filter(|_| permit.generation == self.generation) else { return };
        if verdict == Verdict::Success {
            *self = Bench { generation: self.generation.saturating_add(1), held: None };
        } else if held.probe == Some(permit.at) {
            held.probe = None;
        }
    }

    /// How long until a probe may be tried, for people.
    pub(super) fn benched(&self, now: Span) -> Option<Span> {
        self.held.map(|held| held.until.minus(now)).filter(|left| *left > Span::ZERO)
    }

    /// It is benched, or being probed.
    pub(super) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    fn take(&mut self, now: Span) -> Option<Permit> {
        self.held.as_mut()?.probe = Some(now);
        Some(Permit { generation: self.generation, probe: true, at: now })
    }
}

impl Idle for Account {
    fn is_idle(&self, now: Span) -> bool {
        self.cooling.is_idle(now) && !self.bench.is_held()
    }
}

impl Idle for Cooling {
    fn is_idle(&self, now: Span) -> bool {
        self.held(now).is_none()
    }
}
