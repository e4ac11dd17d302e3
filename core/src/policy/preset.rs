//! The presets, as the JSON a user could have written. Each starts from the empty policy.

/// Name and fields of every preset.
pub(super) const PRESETS: &[(&str, &str)] = &[
    (
        "interactive",
        r#"{"max_attempts": 3, "backoff": {"base": "300ms", "max": "4s"},
            "connect_timeout": "3s", "attempt_timeout": "30s", "total_timeout": "20s"}"#,
    ),
    (
        "batch",
        r#"{"max_attempts": 4, "backoff": {"base": "1s", "max": "20s"},
            "connect_timeout": "3s", "attempt_timeout": "30s", "total_timeout": "90s"}"#,
    ),
    (
        "reasoning",
        r#"{"max_attempts": 3, "backoff": {"base": "1s", "max": "30s"},
            "connect_timeout": "3s", "total_timeout": "30m",
            "stream": {"first_item_timeout": "10m", "idle_timeout": "5m"}}"#,
    ),
    ("router", r#"{"max_attempts": 2, "attempt_timeout": "10s", "total_timeout": "25s"}"#),
    ("guard", r#"{"max_attempts": 2, "attempt_timeout": "20s", "total_timeout": "45s"}"#),
    (
        "tool",
        r#"{"max_attempts": 3, "backoff": {"base": "1s"}, "jitter": {"kind": "proportional", "ratio": 0.2},
            "retry_on": ["timeout", "transport", "rate_limit", "overloaded", "server_error", "model_not_ready",
                         "stream_interrupted", "interrupted", "invalid_output", "parse_error", "schema_invalid"],
            "breaker": {}, "cooldown": {}}"#,
    ),
    (
        "llm",
        r#"{"max_attempts": 3, "backoff": {"base": "1s"}, "jitter": {"kind": "proportional", "ratio": 0.2},
            "retry_on": ["timeout", "transport", "rate_limit", "overloaded", "server_error", "model_not_ready",
                         "stream_interrupted", "interrupted", "invalid_output", "parse_error", "schema_invalid"],
            "targets": [{"id": "primary"}, {"id": "backup", "max_attempts": 2}],
            "breaker": {}, "cooldown": {}}"#,
    ),
    (
        "chat_model",
        r#"{"max_attempts": 4, "backoff": {"base": "100ms", "max": "10s"}, "jitter": {"kind": "additive", "ratio": 0.5},
            "retry_on": ["timeout", "transport", "rate_limit", "overloaded", "server_error", "model_not_ready",
                         "stream_interrupted", "conflict", "interrupted", "invalid_output", "parse_error",
                         "schema_invalid", "unknown"]}"#,
    ),
    (
        "aws_standard",
        r#"{"max_attempts": 3, "backoff": {"base": "50ms", "max": "20s"}, "jitter": {"kind": "full"},
            "kinds": {"rate_limit": {"backoff": {"base": "1s"}}, "overloaded": {"backoff": {"base": "1s"}}},
            "retry_budget": {"capacity": 500, "retry_cost": 14, "throttle_cost": 5, "refund": 1}}"#,
    ),
    ("single", r#"{"max_attempts": 1}"#),
];
