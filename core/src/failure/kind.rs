//! The kinds of failure and their four categories: one table, and a set of kinds as bits.
//!
//! Adding a kind means one row in [`TABLE`]; its wire name, category and alert follow from it.

use std::fmt;

/// What a kind means for the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// Trying again may help.
    Retriable,
    /// A person must act before it can work; raises an alert.
    NeedHuman,
    /// This request cannot succeed as it is.
    Fatal,
    /// Not a failure of the service: somebody or something decided to stop.
    Control,
}

impl Category {
    /// The wire name, such as `need_human`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Category::Retriable => "retriable",
            Category::NeedHuman => "need_human",
            Category::Fatal => "fatal",
            Category::Control => "control",
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident $name:literal $category:ident $fault:literal;)*) => {
        /// What a failure was classified as. The wire name is the variant in `snake_case`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Kind { $($(#[$doc])* $variant,)* }

        /// Every kind in the order of declaration: wire name, category, and whether it is the service's fault.
        const TABLE: &[(Kind, &str, Category, bool)] =
            &[$((Kind::$variant, $name, Category::$category, $fault),)*];
    };
}

kinds! {
    /// No answer in time, or the server gave up waiting (408).
    Timeout "timeout" Retriable true;
    /// The connection failed: refused, reset, unresolved.
    Transport "transport" Retriable true;
    /// Too many requests or tokens in a short window.
    RateLimit "rate_limit" Retriable true;
    /// The service lacks capacity right now (503, 529).
    Overloaded "overloaded" Retriable true;
    /// The service broke (500).
    ServerError "server_error" Retriable true;
    /// The model is loading or being set up.
    ModelNotReady "model_not_ready" Retriable true;
    /// A stream ended before its finish frame, or an error came inside it.
    StreamInterrupted "stream_interrupted" Retriable true;
    /// Another writer was there first (409).
    Conflict "conflict" Retriable false;
    /// The process that ran the attempt stopped; nobody knows how the attempt ended.
    Interrupted "interrupted" Retriable false;
    /// The answer came, and is not usable.
    InvalidOutput "invalid_output" Retriable false;
    /// The answer could not be parsed.
    ParseError "parse_error" Retriable false;
    /// The answer does not match its schema.
    SchemaInvalid "schema_invalid" Retriable false;
    /// The request is wrong (400).
    BadRequest "bad_request" NeedHuman false;
    /// The credentials were not accepted (401).
    AuthFailed "auth_failed" NeedHuman false;
    /// The credentials do not allow this (403).
    PermissionDenied "permission_denied" NeedHuman false;
    /// No such model, deployment or path (404).
    NotFound "not_found" NeedHuman false;
    /// Money is out: a person must pay.
    Billing "billing" NeedHuman false;
    /// A long window (a day, a month) is used up; it comes back by itself.
    QuotaExhausted "quota_exhausted" NeedHuman false;
    /// Nothing here knows what it is.
    Unknown "unknown" NeedHuman false;
    /// Refused or cut by a content filter.
    ContentFiltered "content_filtered" Fatal false;
    /// The input is longer than the model takes.
    ContextLengthExceeded "context_length_exceeded" Fatal false;
    /// The answer stopped at its length limit.
    Truncated "truncated" Fatal false;
    /// The business said no.
    BusinessRejection "business_rejection" Fatal false;
    /// There is nothing to base an answer on.
    NoEvidence "no_evidence" Fatal false;
    /// The caller gave up.
    Cancelled "cancelled" Control false;
    /// A budget of the run is used up.
    BudgetExhausted "budget_exhausted" Control false;
    /// A breaker refused the call.
    CircuitOpen "circuit_open" Control false;
    /// Load was shed before the call started.
    Shed "shed" Control false;
}

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = TABLE.len();

    /// Every kind, in the order of declaration.
    pub fn all() -> impl Iterator<Item = Kind> {
        TABLE.iter().map(|row| row.0)
    }

    /// The kind with this place in the table.
    pub(crate) const fn numbered(number: u8) -> Kind {
        TABLE[number as usize % Kind::COUNT].0
    }

    /// The wire name, such as `rate_limit`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].1
    }

    /// The kind with this wire name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Kind> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// What it means for the call.
    #[must_use]
    pub const fn category(self) -> Category {
        TABLE[self as usize].2
    }

    /// One of the seven kinds that speak against the service, and so count for its breaker.
    #[must_use]
    pub const fn service_fault(self) -> bool {
        TABLE[self as usize].3
    }

    /// True for the kinds that a person has to look at.
    #[must_use]
    pub const fn alert(self) -> bool {
        matches!(self.category(), Category::NeedHuman)
    }

    /// True for the kinds that say "too much": a longer backoff, a smaller charge to the retry budget, a cooldown.
    #[must_use]
    pub const fn throttle(self) -> bool {
        matches!(self, Kind::RateLimit | Kind::Overloaded)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// A set has a bit for each kind, and the packed tables of words have five bits for one.
const _: () = assert!(Kind::COUNT <= 32);

/// A set of kinds, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindSet(u32);

impl KindSet {
    /// The empty set.
    pub const EMPTY: KindSet = KindSet(0);

    /// The set of these kinds.
    #[must_use]
    pub const fn of(kinds: &[Kind]) -> KindSet {
        let mut bits = 0;
        let mut i = 0;
        while i < kinds.len() {
            bits |= 1 << kinds[i] as u32;
            i += 1;
        }
        KindSet(bits)
    }

    /// Every retriable kind: the default of `retry_on`.
    #[must_use]
    pub fn retriable() -> KindSet {
        Kind::all().filter(|k| k.category() == Category::Retriable).collect()
    }

    /// Whether `kind` is in the set.
    #[must_use]
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u32) != 0
    }

    /// Whether no kind is in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set without this kind.
    #[must_use]
    pub const fn without(self, kind: Kind) -> KindSet {
        KindSet(self.0 & !(1 << kind as u32))
    }

    /// The kinds of the set, in the order of declaration.
    pub fn iter(self) -> impl Iterator<Item = Kind> {
        Kind::all().filter(move |k| self.contains(*k))
    }
}

impl FromIterator<Kind> for KindSet {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> KindSet {
        KindSet(kinds.into_iter().fold(0, |bits, k| bits | 1 << k as u32))
    }
}
