//! What went wrong: raw [`Evidence`] in, one classified [`Failure`] out.

mod answer;
mod body;
mod classify;
mod error_type;
mod facts;
mod kind;
mod phrases;
mod provider;
mod retry_after;
mod rules;
mod sse;
mod types;
mod wire;

pub(crate) use answer::{ending, finish_of};
pub(crate) use body::is_error_event;
pub use classify::classify;
pub use kind::{Category, Kind, KindSet};

use crate::Span;
use crate::json::Json;

/// The body of a response, in whatever form the driver has it.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Text, parsed by the core when it is JSON.
    Text(String),
    /// Already parsed JSON.
    Json(Json),
}

/// The raw facts of one failed attempt. Everything is optional; the more there is, the better the classification.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The HTTP status.
    pub status: Option<u16>,
    /// Response headers and trailers, in order. Names are compared without case.
    pub headers: Vec<(String, String)>,
    /// The response body.
    pub body: Option<Body>,
    /// A structured code that came outside of the body, such as a gRPC status name; or what a driver saw of an answer
    /// itself: `eof_without_finish`, `second_start`, `empty_answer`.
    pub provider_code: Option<String>,
    /// A structured type that came outside of the body.
    pub provider_type: Option<String>,
    /// The names of the error's types along its cause chain and through groups, outermost first.
    pub error_types: Vec<String>,
    /// The operating system's or runtime's code, such as `ECONNRESET`.
    pub os_code: Option<String>,
    /// What the error says of itself.
    pub message: Option<String>,
    /// The failure came inside a response that had begun with a success status.
    pub in_stream: bool,
    /// An answer had come, and the user's `check` of it raised this.
    pub in_check: bool,
    /// The error itself (not just a cause of it) is a cancellation or an order to exit.
    pub cancelled: bool,
    /// The trace id of an inner call that this failure carries along its cause chain.
    pub inner_trace: Option<String>,
    /// Wall time in milliseconds since 1970, to measure dates against when the response has no `Date`.
    pub wall_now_ms: Option<u64>,
}

/// Where a retry-after was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryAfterSource {
    /// A response header or trailer.
    Header,
    /// A field of the body.
    Body,
    /// The text of the provider's message.
    Message,
    /// The reset time of an exhausted bucket.
    Reset,
}

/// Which rule gave a failure its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecidedBy {
    /// Cancellation and other control kinds, which nothing overrides.
    Control,
    /// The user's `classify` function.
    Classify,
    /// A rule of the policy.
    Rule,
    /// The type of the error.
    ErrorType,
    /// The provider's code.
    Code,
    /// A specific provider type, or a generic one.
    Type,
    /// The HTTP status.
    Status,
    /// A phrase of the provider's message, or a field of its body.
    Message,
    /// A network code.
    OsCode,
    /// The size of the retry-after: over an hour is a quota.
    RetryAfter,
    /// The driver saw it itself: a timer, an interrupted attempt.
    Driver,
    /// Nothing matched.
    Default,
}

/// One classified failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What it is.
    pub kind: Kind,
    /// The provider's own code.
    pub code: Option<String>,
    /// The provider's message, at most 8 KiB.
    pub message: Option<String>,
    /// How long the server asked to wait; whole milliseconds, rounded up.
    pub retry_after: Option<Span>,
    /// Where that was found.
    pub retry_after_source: Option<RetryAfterSource>,
    /// Which rule decided the kind.
    pub decided_by: DecidedBy,
    /// The server said not to repeat (`x-should-retry: false`, a negative pushback); the kind stays.
    pub retry_forbidden: bool,
    /// The request may have had an effect on the server.
    pub may_have_executed: bool,
    /// The trace id of an inner call that already retried this failure.
    pub inner_trace: Option<String>,
}

/// A rule of the user's own: when all its conditions hold, the failure is of this kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What must hold; all of it, and at least one thing.
    pub when: When,
    /// The kind it gives.
    pub kind: Kind,
}

/// The conditions of a [`Rule`]; `None` asks nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// An error type's name, matched like the built-in types: `shop.StockBusy` also matches `shop.errors.StockBusy`.
    pub error: Option<String>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The provider's code, exactly.
    pub code: Option<String>,
    /// The provider's type, exactly.
    pub error_type: Option<String>,
    /// A part of the provider's message, without case.
    pub message: Option<String>,
}
