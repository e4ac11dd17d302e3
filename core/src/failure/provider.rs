//! What providers' words and HTTP statuses mean: tables, and nothing else.
//!
//! Sources: the error references and SDKs of `OpenAI`, Anthropic, Google, AWS (botocore's retry lists), Azure, Mistral,
//! Groq, Cerebras, GitHub Models, `OpenRouter`, xAI, Moonshot, llama.cpp, Alibaba Model Studio, Volcengine and gRPC.

use super::Kind;
use crate::words::{Packer, Words, packed};

/// Words that mean one thing wherever they stand, as a code or as a type: these beat the status.
const SPECIFIC: Words = packed!(by_kind(&[
    (
        Kind::RateLimit,
        &[
            "rate_limit_exceeded",
            "rate_limit_error",
            "rate_limit_reached",
            "rate_limited",
            "RateLimitReached",
            "RateLimitExceeded",
            "userRateLimitExceeded",
            "too_many_requests",
            "too_many_requests_error",
            "request_quota_exceeded",
            "token_quota_exceeded",
            "queue_exceeded",
            // AWS's throttling codes.
            "Throttling",
            "ThrottlingException",
            "ThrottledException",
            "RequestThrottledException",
            "TooManyRequestsException",
            "ProvisionedThroughputExceededException",
            "TransactionInProgressException",
            "RequestLimitExceeded",
            "BandwidthLimitExceeded",
            "LimitExceededException",
            "RequestThrottled",
            "SlowDown",
            "PriorRequestNotComplete",
            "EC2ThrottledException",
            // Alibaba, Volcengine.
            "Throttling.RateQuota",
            "Throttling.AllocationQuota",
            "RequestBurstTooFast",
        ],
    ),
    (
        Kind::Overloaded,
        &[
            "overloaded_error",
            "server_is_overloaded",
            "engine_overloaded",
            "engine_overloaded_error",
            "service_unavailable_error",
            "service_unavailable",
            "slow_down",
            "MODEL_CAPACITY_EXHAUSTED",
            "service_tier_capacity_exceeded",
            "capacity_exceeded",
            "ServiceUnavailableException",
            "ServerOverloaded",
        ],
    ),
    (
        Kind::Timeout,
        &[
            "timeout_error",
            "request_timeout",
            "vector_store_timeout",
            "ModelTimeoutException",
            "RequestTimeout",
            "RequestTimeoutException",
            "read_timeout",
            "connect_timeout",
        ],
    ),
    (Kind::Transport, &["connect_error", "read_error"]),
    (Kind::ServerError, &["InternalServerException", "failed_to_download_image"]),
    (
        Kind::StreamInterrupted,
        &["stream_eof", "eof_without_finish", "second_start", "stream_interrupted", "ModelStreamErrorException"],
    ),
    (Kind::ModelNotReady, &["ModelNotReadyException", "MPAgreementBeingCreated", "model_not_ready", "ModelLoading"]),
    (Kind::Conflict, &["ConflictException"]),
    (Kind::InvalidOutput, &["empty_answer"]),
    (
        Kind::Billing,
        &[
            "insufficient_quota",
            "credit_balance_exhausted",
            "billing_hard_limit_reached",
            "billing_not_active",
            "billing_error",
            "usage_not_included",
            "blocked_api_access",
            "insufficient_balance",
            "insufficient_credits",
            "exceeded_current_quota_error",
            "INSUFFICIENT_G1_CREDITS_BALANCE",
            "BILLING_DISABLED",
            "Arrearage",
            "AccountOverdueError",
        ],
    ),
    (
        Kind::QuotaExhausted,
        &[
            "usage_limit_reached",
            "quota_exceeded",
            "QuotaExceeded",
            "QUOTA_EXHAUSTED",
            "dailyLimitExceeded",
            "ServiceQuotaExceededException",
            "subscription:free-usage-exhausted",
        ],
    ),
    (
        Kind::ContextLengthExceeded,
        &[
            "context_length_exceeded",
            "context_window_exceeded",
            "exceed_context_size_error",
            "request_too_large",
            "string_above_max_length",
        ],
    ),
    (
        Kind::ContentFiltered,
        &[
            "content_policy_violation",
            "content_filter",
            "content_filtered",
            "cyber_policy",
            "image_content_policy_violation",
            "moderation_blocked",
            "ResponsibleAIPolicyViolation",
            "DataInspectionFailed",
            "data_inspection_failed",
            "SensitiveContentDetected",
            "InputTextSensitiveContentDetected",
            "OutputTextSensitiveContentDetected",
        ],
    ),
    (Kind::Truncated, &["length"]),
    (
        Kind::AuthFailed,
        &[
            "invalid_api_key",
            "ip_not_authorized",
            "authentication_error",
            "API_KEY_INVALID",
            "VALIDATION_REQUIRED",
            "RequestExpired",
            "ExpiredTokenException",
            "UnrecognizedClientException",
            "InvalidSignatureException",
            "InvalidApiKey",
        ],
    ),
    (
        Kind::PermissionDenied,
        &[
            "unsupported_country_region_territory",
            "permission_error",
            "AccessDeniedException",
            "FTUFormNotFilled",
            "data_residency_mismatch",
            "AccessDenied.Unpurchased",
        ],
    ),
    (
        Kind::NotFound,
        &["model_not_found", "not_found_error", "DeploymentNotFound", "ResourceNotFoundException", "ModelNotFound"],
    ),
    (Kind::BadRequest, &["invalid_image_url", "ModelErrorException"]),
]));

/// Words that say little more than a status would: asked after it.
const GENERIC: Words = packed!(by_kind(&[
    (Kind::BadRequest, &["invalid_request_error", "invalid_request", "bad_request", "ValidationException"]),
    (Kind::ServerError, &["server_error", "api_error", "internal_error", "internal_server_error"]),
    (Kind::Timeout, &["timeout"]),
    // gRPC's statuses, which Google sends beside the HTTP status. `UNKNOWN` says nothing, so it is not here.
    (Kind::BadRequest, &["INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNIMPLEMENTED"]),
    (Kind::RateLimit, &["RESOURCE_EXHAUSTED"]),
    (Kind::Overloaded, &["UNAVAILABLE"]),
    (Kind::Timeout, &["DEADLINE_EXCEEDED"]),
    (Kind::Conflict, &["ABORTED", "ALREADY_EXISTS"]),
    // A server's `CANCELLED` is its own doing; the caller's is told apart before this table is asked.
    (Kind::ServerError, &["INTERNAL", "DATA_LOSS", "CANCELLED"]),
    (Kind::AuthFailed, &["UNAUTHENTICATED"]),
    (Kind::PermissionDenied, &["PERMISSION_DENIED", "request_forbidden"]),
    (Kind::NotFound, &["NOT_FOUND"]),
]));

/// Words of an error without a status that say the caller cancelled.
const CANCELLED: [&str; 3] = ["cancelled", "canceled", "abort"];

/// Words that say the request never left.
const NEVER_SENT: [&str; 2] = ["connect_error", "connect_timeout"];

/// What a word means wherever it stands.
pub(super) fn specific(word: &str) -> Option<Kind> {
    look_up(SPECIFIC, word)
}

/// What a word means where the status says nothing.
pub(super) fn generic(word: &str) -> Option<Kind> {
    look_up(GENERIC, word)
}

/// Whether a word of an error without a status says that the caller cancelled.
pub(super) fn cancelled(word: &str) -> bool {
    CANCELLED.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Whether a word says that the request never left.
pub(super) fn never_sent(word: &str) -> bool {
    NEVER_SENT.contains(&word)
}

/// Without case: an event stream writes `throttlingException` for `ThrottlingException`.
fn look_up(table: Words, word: &str) -> Option<Kind> {
    table.iter().find(|(_, known)| known.eq_ignore_ascii_case(word)).map(|(kind, _)| Kind::numbered(kind))
}

const fn by_kind(rows: &[(Kind, &[&str])]) -> Packer {
    let mut out = Packer::new();
    let mut at = 0;
    while at < rows.len() {
        out = out.words(rows[at].0 as usize, rows[at].1);
        at += 1;
    }
    out
}

/// What an HTTP status means, by range where it is not a known one; success and informational say nothing.
pub(super) fn status(status: u16) -> Option<Kind> {
    Some(match status {
        401 | 407 => Kind::AuthFailed,
        402 => Kind::Billing,
        403 | 451 => Kind::PermissionDenied,
        404 | 410 => Kind::NotFound,
        408 | 504 => Kind::Timeout,
        409 | 423 => Kind::Conflict,
        413 => Kind::ContextLengthExceeded,
        // Too early: the server does not trust TLS early data; on a connection that is set up it goes through.
        425 => Kind::Transport,
        429 => Kind::RateLimit,
        // 498 is Groq's "flex tier capacity exceeded"; 529 is Anthropic's "overloaded".
        498 | 503 | 529 => Kind::Overloaded,
        // 499 is decided before: the caller's, or what the body says.
        499 => return None,
        300..=499 => Kind::BadRequest,
        500..=599 => Kind::ServerError,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_stands_twice() {
        let words = || SPECIFIC.iter().chain(GENERIC.iter()).map(|(_, word)| word);
        for word in words() {
            let count = words().filter(|other| other.eq_ignore_ascii_case(word)).count();
            // AWS and others spell the same word with and without underscores; only exact repeats are mistakes.
            assert_eq!(count, 1, "{word}");
        }
    }

    #[test]
    fn every_error_status_means_something() {
        for code in 300..600 {
            assert_eq!(status(code).is_none(), code == 499, "{code}");
        }
        assert_eq!([0, 100, 200, 299, 600, u16::MAX].map(status), [None; 6]);
    }
}
