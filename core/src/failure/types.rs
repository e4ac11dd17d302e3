//! The error types and network codes that the core knows by name. Only types that carry no HTTP status are listed.

use super::Kind;

/// One error type: `a.B` stands for any `B` below the package `a`, a bare `B` for any class of that name.
pub struct TypeRow {
    /// The name, as [`Evidence::error_types`](super::Evidence::error_types) spells it.
    pub name: &'static str,
    /// What it means.
    pub kind: Kind,
    /// Whether the request may have reached the server.
    pub sent: bool,
}

/// One network code of an operating system or runtime.
pub struct CodeRow {
    /// The code, such as `ECONNRESET`.
    pub code: &'static str,
    /// What it means.
    pub kind: Kind,
    /// Whether the request may have reached the server.
    pub sent: bool,
}

/// The error types, most specific first.
pub const TYPES: &[TypeRow] = &[
    TypeRow { name: "httpx.ConnectTimeout", kind: Kind::Timeout, sent: false },
    TypeRow { name: "httpx.ReadTimeout", kind: Kind::Timeout, sent: true },
    TypeRow { name: "httpx.ConnectError", kind: Kind::Transport, sent: false },
    TypeRow { name: "httpx.ReadError", kind: Kind::Transport, sent: true },
    TypeRow { name: "json.JSONDecodeError", kind: Kind::ParseError, sent: true },
];

/// The network codes.
pub const OS_CODES: &[CodeRow] = &[
    CodeRow { code: "ECONNREFUSED", kind: Kind::Transport, sent: false },
    CodeRow { code: "ENOTFOUND", kind: Kind::Transport, sent: false },
    CodeRow { code: "ECONNRESET", kind: Kind::Transport, sent: true },
    CodeRow { code: "ETIMEDOUT", kind: Kind::Timeout, sent: true },
];
