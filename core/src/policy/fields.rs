//! The fields of a policy: plain data with its defaults, after validation. How they are written is in `read` and
//! `write`; what they mean is in the machine that uses them.

use crate::Span;
use crate::backoff::Curve;
use crate::failure::{Kind, KindSet, Rule};
use crate::jitter::Jitter;

/// A ratio or factor in millionths, so that no decision depends on a float.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millionths(pub u64);

impl Millionths {
    /// One, as millionths.
    pub const ONE: Millionths = Millionths(1_000_000);
}

/// Everything a policy says. [`Policy`](crate::Policy) hands out a shared, validated copy of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Attempts per target, the first included. Default 3.
    pub max_attempts: u32,
    /// Time to connect, for the client. Default: the client's own.
    pub connect_timeout: Option<Span>,
    /// Time for one attempt. Default: only the time left.
    pub attempt_timeout: Option<Span>,
    /// Time for the whole call, from the first `begin`. Default 10 minutes.
    pub total_timeout: Span,
    /// The least time worth starting an attempt with. Default zero.
    pub min_attempt_time: Span,
    /// The most time spent waiting between attempts. Default: no bound but the total.
    pub max_total_wait: Option<Span>,
    /// Attempts over all targets. Default: no bound but the targets' own.
    pub max_attempts_total: Option<u32>,
    /// How the wait grows.
    pub backoff: Backoff,
    /// How the wait is spread.
    pub jitter: Jitter,
    /// How a server's own wish is honoured.
    pub retry_after: RetryAfter,
    /// The kinds that are tried again on the same target.
    pub retry_on: KindSet,
    /// The kinds that go to the next target at once.
    pub fallback_on: KindSet,
    /// What differs for one kind.
    pub kinds: Vec<(Kind, KindOverride)>,
    /// The user's own rules of classification, first match first.
    pub rules: Vec<Rule>,
    /// Whether repeating can do harm.
    pub side_effects: SideEffects,
    /// What an outer call does with a failure that an inner call already retried.
    pub nested: Nested,
    /// A call that failed everywhere goes to a person.
    pub requires_human_fallback: bool,
    /// For shedding: lower is shed first. Default 5.
    pub priority: u32,
    /// What attempts are aimed at, in order; never empty.
    pub targets: Vec<Target>,
    /// Breaker of each target's upstream.
    pub breaker: Option<BreakerConfig>,
    /// Retry budget of each target.
    pub retry_budget: Option<RetryBudgetConfig>,
    /// Cooldown and benching.
    pub cooldown: Option<CooldownConfig>,
    /// Shedding thresholds.
    pub shed: Option<ShedConfig>,
    /// When a slow attempt is joined by another; drivers that cannot do so leave it. Default: never.
    pub hedge: Option<Hedge>,
    /// How streams are retried and timed.
    pub stream: Stream,
}

impl Default for Fields {
    fn default() -> Fields {
        Fields {
            max_attempts: 3,
            connect_timeout: None,
            attempt_timeout: None,
            total_timeout: Span::from_secs(600),
            min_attempt_time: Span::ZERO,
            max_total_wait: None,
            max_attempts_total: None,
            backoff: Backoff {
                curve: Curve::Exponential(Millionths(2_000_000)),
                base: Span::from_millis(500),
                max: Span::from_secs(20),
            },
            jitter: Jitter::default(),
            retry_after: RetryAfter { max: Span::from_secs(60), spread: Millionths(100_000) },
            retry_on: KindSet::retriable(),
            fallback_on: KindSet::of(&[Kind::QuotaExhausted, Kind::Billing, Kind::NotFound]),
            kinds: Vec::new(),
            rules: Vec::new(),
            side_effects: SideEffects::Idempotent,
            nested: Nested::Bounded,
            requires_human_fallback: false,
            priority: 5,
            targets: vec![Target::named("primary")],
            breaker: None,
            retry_budget: None,
            cooldown: None,
            shed: None,
            hedge: None,
            stream: Stream::default(),
        }
    }
}

/// A curve of waits and its cap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The shape of growth.
    pub curve: Curve,
    /// The first wait. Default 500 ms.
    pub base: Span,
    /// The cap. Default 20 s.
    pub max: Span,
}

/// How a server's retry-after is honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// The longest retry-after that is waited for, inclusive. Default 60 s.
    pub max: Span,
    /// The share of it that is added at random, so that clients do not return together. Default 0.1.
    pub spread: Millionths,
}

/// What differs for one kind. `None` takes the policy's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindOverride {
    /// Another curve.
    pub backoff: Option<Backoff>,
    /// Another jitter.
    pub jitter: Option<Jitter>,
    /// At most this many attempts may end with this kind on one target; only lowers.
    pub max_attempts: Option<u32>,
}

/// Whether repeating a call can do harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SideEffects {
    /// Repeating is harmless. The default.
    #[default]
    Idempotent,
    /// Once it may have executed, it is not repeated.
    Unsafe,
}

/// What an outer call does with a failure that an inner call already retried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nested {
    /// It does not retry it again: layers add, they never multiply. The default.
    #[default]
    Bounded,
    /// It retries as if the inner call were one attempt.
    Independent,
    /// An inner call below a visible outer one is an error.
    Refuse,
}

impl Nested {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Nested::Bounded => "bounded",
            Nested::Independent => "independent",
            Nested::Refuse => "refuse",
        }
    }
}

/// What an attempt is aimed at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name, unique in the policy.
    pub id: String,
    /// Whose limits, quota, bill and credentials it uses. Default: the id.
    pub account: Option<String>,
    /// Which service it reaches. Default: the id.
    pub upstream: Option<String>,
    /// Attempts on this target. Default: the policy's.
    pub max_attempts: Option<u32>,
    /// Time for one attempt on this target. Default: the policy's.
    pub attempt_timeout: Option<Span>,
}

impl Target {
    /// A target that is only a name.
    #[must_use]
    pub fn named(id: &str) -> Target {
        Target { id: id.to_owned(), account: None, upstream: None, max_attempts: None, attempt_timeout: None }
    }

    /// The account's key: its own name, or the id.
    #[must_use]
    pub fn account_key(&self) -> &str {
        self.account.as_deref().unwrap_or(&self.id)
    }

    /// The upstream's key: its own name, or the id.
    #[must_use]
    pub fn upstream_key(&self) -> &str {
        self.upstream.as_deref().unwrap_or(&self.id)
    }
}

/// When a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// What opens it.
    pub trip: Trip,
    /// How long it stays open the first time. Default 30 s.
    pub open_for: Span,
    /// The longest it stays open after failed probes, each doubling the time. Default 5 min.
    pub open_for_max: Span,
    /// How long a probe may take before another may probe. Default 60 s.
    pub probe_lease: Span,
}

impl Default for BreakerConfig {
    fn default() -> BreakerConfig {
        BreakerConfig {
            trip: Trip::Consecutive(5),
            open_for: Span::from_secs(30),
            open_for_max: Span::from_secs(300),
            probe_lease: Span::from_secs(60),
        }
    }
}

/// What opens a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trip {
    /// This many failed calls in a row. Default 5.
    Consecutive(u32),
    /// A share of failed calls.
    Ratio {
        /// Over this time. Default 10 s.
        window: Span,
        /// Once there are at least this many calls in it. Default 20.
        min_calls: u32,
        /// The share that opens it, inclusive.
        ratio: Millionths,
    },
}

/// How many retries a target may have beside its first attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryBudgetConfig {
    /// A bucket of tokens (AWS's standard mode: 500, 14, 5, 1).
    Tokens {
        /// Tokens at the start, and at most. Default 500.
        capacity: u32,
        /// What a retry costs. Default 14.
        retry_cost: u32,
        /// What a retry of a throttle (`rate_limit`, `overloaded`) costs. Default 5.
        throttle_cost: u32,
        /// What a first-try success adds. Default 1.
        refund: u32,
    },
    /// A share of the requests of a window, plus a floor.
    Ratio {
        /// Retries per request. Default 0.2.
        ratio: Millionths,
        /// Retries allowed per second whatever the requests. Default 10.
        min_per_second: u32,
        /// Over this time. Default 10 s.
        window: Span,
    },
}

/// How long one call's throttling holds back the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CooldownConfig {
    /// The longest cooldown. Default 5 min.
    pub max: Span,
    /// How long an account is benched when no retry-after says. Default 5 min.
    pub bench: Span,
}

impl Default for CooldownConfig {
    fn default() -> CooldownConfig {
        CooldownConfig { max: Span::from_secs(300), bench: Span::from_secs(300) }
    }
}

/// When calls are shed before they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShedConfig {
    /// A reported queue depth above this sheds.
    pub queue_depth: Option<u64>,
    /// A reported cost ratio above this sheds.
    pub cost_ratio: Option<Millionths>,
    /// Calls with a priority below this are shed. Default 5.
    pub below_priority: u32,
}

/// When an attempt that is slow is joined by another one beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hedge {
    /// How long the latest attempt may go without an answer or a first item before another joins it.
    pub after: Span,
    /// How many may join one attempt. Default 1.
    pub max: u32,
}

/// How streams are retried and timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// What happens once something was delivered.
    pub mode: StreamMode,
    /// Time to the first item.
    pub first_item_timeout: Option<Span>,
    /// Time between two data events, while waiting for the source.
    pub idle_timeout: Option<Span>,
    /// Time without any byte at all.
    pub silence_timeout: Option<Span>,
}

/// What happens when a stream fails after items were delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamMode {
    /// It stops with what was delivered. The default.
    #[default]
    BeforeFirstItem,
    /// Nothing is delivered until the answer is whole.
    Buffered,
    /// The consumer is told to discard what it has, then everything comes again.
    Restart,
    /// The user's function is told what was delivered, and goes on from there.
    Resume,
}

impl StreamMode {
    /// The name in JSON, such as `before_first_item`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StreamMode::BeforeFirstItem => "before_first_item",
            StreamMode::Buffered => "buffered",
            StreamMode::Restart => "restart",
            StreamMode::Resume => "resume",
        }
    }
}
