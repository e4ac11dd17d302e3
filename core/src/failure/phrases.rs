//! What the provider's message and the fields of its error add to what code, type or status said.
//!
//! A row applies only to the kinds it refines, so prose never contradicts a word: "rate limit" under a 401 changes
//! nothing. Texts are searched in the provider's own message alone.

use super::facts::Facts;
use super::{Kind, KindSet};
use crate::json::Json;
use crate::text::{holds, lowered, places};
use crate::words::{Packer, Words, packed};

/// One meaning, the kinds it refines, and the phrases (lower case) that carry it.
struct Row {
    to: Kind,
    from: KindSet,
    phrases: &'static [&'static str],
}

/// Nothing certain yet: these say little about what went wrong.
const VAGUE: KindSet = KindSet::of(&[Kind::BadRequest, Kind::PermissionDenied, Kind::Unknown, Kind::ServerError]);
const VAGUE_OR_LIMIT: KindSet =
    KindSet::of(&[Kind::BadRequest, Kind::PermissionDenied, Kind::Unknown, Kind::ServerError, Kind::RateLimit]);

/// In order of precedence: what can never succeed, money, long windows, then what passes by itself.
const ROWS: &[Row] = &[
    Row {
        to: Kind::ContextLengthExceeded,
        from: VAGUE,
        phrases: &[
            "context length",
            "context window",
            "context size",
            "maximum number of tokens",
            "maximum input length",
            "input is too long",
            "input is too large",
            "input too long",
            "input too large",
            "prompt is too long",
            "prompt is too large",
            "too many input tokens",
            "reduce the length of the",
            "上下文长度",
            "上下文过长",
            "输入过长",
            "输入长度超",
            "超过最大长度",
            "超出最大长度",
            "长度超过限制",
            "长度超出限制",
        ],
    },
    Row {
        to: Kind::ContextLengthExceeded,
        from: VAGUE_OR_LIMIT,
        phrases: &["request too large", "request is too large", "tokens must be reduced"],
    },
    Row {
        to: Kind::Billing,
        from: VAGUE_OR_LIMIT,
        phrases: &[
            "credit balance is too low",
            "insufficient credit",
            "insufficient balance",
            "insufficient funds",
            "out of credits",
            "purchase credits",
            "enable billing",
            "billing details",
            "billing hard limit",
            "account balance",
            "spend limit",
            "spending limit",
            "payment required",
            "余额不足",
            "欠费",
            "充值",
        ],
    },
    Row {
        to: Kind::QuotaExhausted,
        from: VAGUE_OR_LIMIT,
        phrases: &[
            "usage limit",
            "regain access",
            "per day",
            "daily limit",
            "daily quota",
            "daily rate",
            "daily token",
            "daily request",
            "weekly limit",
            "per month",
            "monthly limit",
            "monthly quota",
            "monthly usage",
            "额度已用完",
            "额度已用尽",
            "额度用尽",
            "配额已用完",
            "配额已用尽",
            "配额不足",
            "每日限额",
            "每日额度",
            "今日额度",
            "当日额度",
            "每月额度",
        ],
    },
    Row {
        to: Kind::ModelNotReady,
        from: KindSet::of(&[Kind::Overloaded, Kind::ServerError, Kind::Unknown, Kind::RateLimit]),
        phrases: &[
            "currently loading",
            "is loading",
            "loading model",
            "still being loaded",
            "model is not ready",
            "warming up",
            "模型加载中",
            "模型正在加载",
        ],
    },
    Row {
        to: Kind::Overloaded,
        from: KindSet::of(&[Kind::RateLimit, Kind::ServerError, Kind::Unknown]),
        phrases: &[
            "overloaded",
            "resource exhausted",
            "high demand",
            "at capacity",
            "no capacity",
            "server busy",
            "server is busy",
            "服务繁忙",
            "服务器繁忙",
            "系统繁忙",
            "过载",
        ],
    },
    Row {
        to: Kind::ContentFiltered,
        from: VAGUE,
        phrases: &[
            "content management policy",
            "content policy",
            "content filter",
            "safety system",
            "flagged by moderation",
            "flagged as potentially violating",
            "内容安全",
            "敏感内容",
            "敏感信息",
            "敏感词",
            "违规内容",
            "不安全或敏感",
        ],
    },
    Row {
        to: Kind::RateLimit,
        from: VAGUE,
        phrases: &[
            "rate limit exceeded",
            "rate limit reached",
            "exceeded the rate limit",
            "exceeded your rate limit",
            "too many requests",
            "请求过于频繁",
            "请求频率",
            "频率过高",
            "请求过多",
            "限流",
            "速率限制",
            "并发数",
        ],
    },
    Row {
        to: Kind::AuthFailed,
        from: KindSet::of(&[Kind::BadRequest, Kind::Unknown]),
        phrases: &[
            "api key not valid",
            "invalid api key",
            "incorrect api key",
            "密钥无效",
            "无效的密钥",
            "鉴权失败",
            "认证失败",
            "身份验证失败",
        ],
    },
    Row {
        to: Kind::PermissionDenied,
        from: KindSet::of(&[Kind::BadRequest, Kind::Unknown]),
        phrases: &["无权限", "没有权限", "无权访问"],
    },
    Row {
        to: Kind::NotFound,
        from: KindSet::of(&[Kind::BadRequest, Kind::Unknown]),
        phrases: &["model not found", "模型不存在"],
    },
    Row {
        to: Kind::Timeout,
        from: KindSet::of(&[Kind::ServerError, Kind::Unknown]),
        phrases: &["timed out", "request timeout", "请求超时", "处理超时"],
    },
];

/// What the error's fields or, where they are silent, its message make of `kind`.
pub(super) fn refine(kind: Kind, facts: &Facts) -> Option<Kind> {
    field(kind, facts).or_else(|| phrase(kind, facts.message?))
}

fn phrase(kind: Kind, message: &str) -> Option<Kind> {
    let message = lowered(message);
    if VAGUE_OR_LIMIT.contains(kind) && never_fits(&message) {
        return Some(Kind::ContextLengthExceeded);
    }
    PHRASES.iter().find_map(|(row, phrase)| {
        let (from, to) = MEANINGS[usize::from(row)];
        (from.contains(kind) && holds(&message, phrase)).then_some(to)
    })
}

/// Every phrase with the number of its row.
const PHRASES: Words = packed!({
    let mut out = Packer::new();
    let mut at = 0;
    while at < ROWS.len() {
        out = out.words(at, ROWS[at].phrases);
        at += 1;
    }
    out
});

/// The rows without their phrases.
const MEANINGS: [(KindSet, Kind); ROWS.len()] = {
    let mut out = [(VAGUE, Kind::Unknown); ROWS.len()];
    let mut at = 0;
    while at < ROWS.len() {
        out[at] = (ROWS[at].from, ROWS[at].to);
        at += 1;
    }
    out
};

/// "Requested 9000" over "Limit 6000": no wait makes it fit. A "current" beside a limit is a window that fills up.
fn never_fits(message: &str) -> bool {
    let after = |word: &str| {
        places(message, word).find_map(|at| {
            let rest = message[at + word.len()..].trim_start_matches([' ', ':', '=']);
            let digits = rest.split(|c: char| !c.is_ascii_digit() && c != ',').next()?;
            let number = digits.bytes().filter(u8::is_ascii_digit);
            rest.starts_with(|c: char| c.is_ascii_digit())
                .then(|| number.fold(0u64, |n, b| n.saturating_mul(10).saturating_add(u64::from(b - b'0'))))
        })
    };
    matches!((after("requested"), after("limit")), (Some(requested), Some(limit)) if requested > limit)
}

/// What a field of the error says.
fn field(kind: Kind, facts: &Facts) -> Option<Kind> {
    let error = facts.error?;
    let limited = KindSet::of(&[Kind::RateLimit, Kind::Overloaded, Kind::Unknown]).contains(kind);
    if limited && let Some(window) = quota_window(&error) {
        return Some(window);
    }
    let metadata = |key: &str| error.object.get("metadata").and_then(|m| m.get(key));
    let in_flight = || metadata("limit_source").and_then(Json::as_str).is_some_and(|s| holds(s, "in_flight"));
    match kind {
        // OpenRouter: money that is only reserved by other calls comes back by itself.
        Kind::Billing if in_flight() => Some(Kind::RateLimit),
        // OpenRouter: a 403 that shows what was flagged is moderation.
        Kind::PermissionDenied if metadata("flagged_input").is_some() => Some(Kind::ContentFiltered),
        // Hugging Face: the time until the model is loaded.
        Kind::Overloaded
            if error.field(&["estimated_time"]).is_some_and(|n| matches!(n, Json::Whole(_) | Json::Number(_))) =>
        {
            Some(Kind::ModelNotReady)
        }
        _ => None,
    }
}

/// The window of Google's quota ids: a day (or longer) is a quota, a minute a rate limit; the longest counts.
fn quota_window(error: &super::body::ErrorBody) -> Option<Kind> {
    let mut window = None;
    for (name, detail) in error.details() {
        let violations = detail.get("violations").and_then(Json::as_list).unwrap_or_default();
        let metadata = detail.get("metadata").filter(|_| name == "ErrorInfo");
        for holder in violations.iter().chain(metadata) {
            window = window_of(holder).or(window);
            if window == Some(Kind::QuotaExhausted) {
                return window;
            }
        }
    }
    window
}

/// The window that the ids of a violation or of an `ErrorInfo` name.
fn window_of(holder: &Json) -> Option<Kind> {
    let mut window = None;
    for key in ["quotaId", "quota_id", "quota_limit", "quota_unit"] {
        let id = holder.get(key).and_then(Json::as_str).unwrap_or_default().to_ascii_lowercase();
        let names = |windows: [&str; 4]| windows.iter().any(|window| holds(&id, window));
        if names(["perday", "perweek", "permonth", "1/d"]) {
            return Some(Kind::QuotaExhausted);
        }
        if names(["perminute", "persecond", "perhour", "1/min"]) {
            window = Some(Kind::RateLimit);
        }
    }
    window
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_lower_case() {
        for phrase in ROWS.iter().flat_map(|row| row.phrases) {
            assert_eq!(*phrase, phrase.to_lowercase());
        }
    }

    #[test]
    fn only_more_than_the_limit_never_fits() {
        assert!(never_fits("limit 6000, requested 9000"));
        assert!(never_fits("limit: 6,000, requested: 9,000"));
        assert!(!never_fits("rate limit reached: limit 30000, used 22999, requested 12528"));
        assert!(!never_fits("limit 6000, requested 6000"));
        assert!(!never_fits("current 9000, limit 6000"));
        assert!(!never_fits("requested the limit"));
        assert!(!never_fits("requested 99999999999999999999999, limit 99999999999999999999999"));
    }
}
