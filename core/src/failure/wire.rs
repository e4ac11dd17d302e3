//! A failure as data: the names of its parts, its constructor for drivers, and its JSON.

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use super::{Category, DecidedBy, Failure, Kind, KindSet, RetryAfterSource};
use crate::Span;

macro_rules! names {
    ($type:ty: $($variant:ident $name:literal,)*) => {
        impl $type {
            const ALL: &'static [($type, &'static str)] = &[$((<$type>::$variant, $name),)*];

            /// The wire name, in `snake_case`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                Self::ALL[self as usize].1
            }

            /// The one with this wire name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<$type> {
                Self::ALL.iter().find(|row| row.1 == name).map(|row| row.0)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

names! { RetryAfterSource:
    Header "header",
    Body "body",
    Message "message",
    Reset "reset",
}

names! { DecidedBy:
    Control "control",
    Classify "classify",
    Rule "rule",
    ErrorType "error_type",
    Code "code",
    Type "type",
    Status "status",
    Message "message",
    OsCode "os_code",
    RetryAfter "retry_after",
    Driver "driver",
    Default "default",
}

/// Kinds that say the request was refused or never sent; every other may have had an effect.
const NOT_EXECUTED: KindSet = KindSet::of(&[
    Kind::RateLimit,
    Kind::BadRequest,
    Kind::AuthFailed,
    Kind::PermissionDenied,
    Kind::NotFound,
    Kind::Billing,
    Kind::QuotaExhausted,
    Kind::ContextLengthExceeded,
    Kind::BudgetExhausted,
    Kind::CircuitOpen,
    Kind::Shed,
]);

impl Failure {
    /// A failure that a driver saw itself, such as a timer that ran out. Whether it may have executed follows from
    /// the kind; set the field where the driver knows better.
    #[must_use]
    pub fn of(kind: Kind) -> Failure {
        Failure {
            kind,
            code: None,
            message: None,
            retry_after: None,
            retry_after_source: None,
            decided_by: DecidedBy::Driver,
            retry_forbidden: false,
            may_have_executed: !NOT_EXECUTED.contains(kind),
            inner_trace: None,
        }
    }

    /// What the kind means for the call.
    #[must_use]
    pub const fn category(&self) -> Category {
        self.kind.category()
    }

    /// Whether trying again may help. The policy has the last word.
    #[must_use]
    pub const fn retriable(&self) -> bool {
        matches!(self.kind.category(), Category::Retriable)
    }

    /// Whether it speaks against the service, and so counts for its breaker.
    #[must_use]
    pub const fn service_fault(&self) -> bool {
        self.kind.service_fault()
    }

    /// Whether a person has to look at it.
    #[must_use]
    pub const fn alert(&self) -> bool {
        self.kind.alert()
    }
}

/// `rate_limit (rate_limit_exceeded): Rate limit reached, retry after 2s`.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if let Some(code) = &self.code {
            write!(f, " ({code})")?;
        }
        if let Some(message) = &self.message {
            write!(f, ": {message}")?;
        }
        if let Some(after) = self.retry_after {
            write!(f, ", retry after {after}")?;
        }
        Ok(())
    }
}

/// An object with every field, absent ones as `null`; `retry_after_ns` is in nanoseconds.
impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Failure", 10)?;
        object.serialize_field("kind", self.kind.name())?;
        object.serialize_field("category", self.kind.category().name())?;
        object.serialize_field("code", &self.code)?;
        object.serialize_field("message", &self.message)?;
        object.serialize_field("retry_after_ns", &self.retry_after.map(Span::as_nanos))?;
        object.serialize_field("retry_after_source", &self.retry_after_source.map(RetryAfterSource::name))?;
        object.serialize_field("decided_by", self.decided_by.name())?;
        object.serialize_field("retry_forbidden", &self.retry_forbidden)?;
        object.serialize_field("may_have_executed", &self.may_have_executed)?;
        object.serialize_field("inner_trace", &self.inner_trace)?;
        object.end()
    }
}

/// Reads what [`Serialize`] writes, or a shorter object: only `kind` is required, the rest is as [`Failure::of`] has
/// it. `retry_after` may be given as a duration such as `"2s"` in place of `retry_after_ns`.
///
/// ```
/// use reprieve::{Failure, Span};
/// let failure: Failure = serde_json::from_str(r#"{"kind": "rate_limit", "retry_after": "2s"}"#).unwrap();
/// assert_eq!(failure.retry_after, Some(Span::from_secs(2)));
/// let error = serde_json::from_str::<Failure>(r#"{"kind": "rate_limited"}"#).unwrap_err();
/// assert!(error.to_string().starts_with("failure.kind: \"rate_limited\" is not allowed; allowed: timeout, "));
/// ```
impl<'de> Deserialize<'de> for Failure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Failure, D::Error> {
        let fields = Map::deserialize(deserializer)?;
        read(&fields).map_err(de::Error::custom)
    }
}

const FIELDS: &str = "kind, category, code, message, retry_after, retry_after_ns, retry_after_source, decided_by, \
                      retry_forbidden, may_have_executed, inner_trace";

fn read(fields: &Map<String, Value>) -> Result<Failure, String> {
    let kind = fields.get("kind").unwrap_or(&Value::Null);
    let kind = kind.as_str().and_then(Kind::from_name).ok_or_else(|| {
        let names: Vec<&str> = Kind::all().map(Kind::name).collect();
        refused("kind", kind, &names.join(", "))
    })?;
    let mut failure = Failure::of(kind);
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        set(&mut failure, name, value)?;
    }
    Ok(failure)
}

fn set(failure: &mut Failure, name: &str, value: &Value) -> Result<(), String> {
    match name {
        "kind" => {}
        // It follows from the kind; a different one is a damaged record.
        "category" => {
            let category = failure.kind.category().name();
            (value == category).then_some(()).ok_or_else(|| refused(name, value, category))?;
        }
        "code" => failure.code = Some(text(name, value)?),
        "message" => failure.message = Some(text(name, value)?),
        "inner_trace" => failure.inner_trace = Some(text(name, value)?),
        "retry_after" => {
            let span = value.as_str().map(Span::parse).and_then(Result::ok);
            failure.retry_after = Some(span.ok_or_else(|| refused(name, value, "a duration such as \"2s\""))?);
        }
        "retry_after_ns" => {
            let ns = value.as_u64().ok_or_else(|| refused(name, value, "a whole number of nanoseconds"))?;
            failure.retry_after = Some(Span::from_nanos(ns));
        }
        "retry_after_source" => {
            failure.retry_after_source = Some(named(name, value, RetryAfterSource::ALL)?);
        }
        "decided_by" => failure.decided_by = named(name, value, DecidedBy::ALL)?,
        "retry_forbidden" => failure.retry_forbidden = flag(name, value)?,
        "may_have_executed" => failure.may_have_executed = flag(name, value)?,
        _ => return Err(format!("failure.{name}: no such field; allowed: {FIELDS}")),
    }
    Ok(())
}

fn refused(name: &str, value: &Value, allowed: &str) -> String {
    format!("failure.{name}: {value} is not allowed; allowed: {allowed}")
}

fn text(name: &str, value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| refused(name, value, "a string"))
}

fn flag(name: &str, value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| refused(name, value, "true, false"))
}

fn named<T: Copy>(name: &str, value: &Value, all: &[(T, &str)]) -> Result<T, String> {
    all.iter().find(|row| value == row.1).map(|row| row.0).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|row| row.1).collect();
        refused(name, value, &names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let failure = Failure {
            code: Some("1302".into()),
            message: Some("请求过于频繁".into()),
            retry_after: Some(Span::MAX),
            retry_after_source: Some(RetryAfterSource::Reset),
            decided_by: DecidedBy::OsCode,
            retry_forbidden: true,
            may_have_executed: true,
            inner_trace: Some("00".into()),
            ..Failure::of(Kind::RateLimit)
        };
        let json = serde_json::to_string(&failure).unwrap();
        assert_eq!(serde_json::from_str::<Failure>(&json).unwrap(), failure);
    }

    #[test]
    fn every_kind_and_name_reads_back() {
        for kind in Kind::all() {
            let json = serde_json::to_string(&Failure::of(kind)).unwrap();
            assert_eq!(serde_json::from_str::<Failure>(&json).unwrap(), Failure::of(kind));
        }
        for (by, name) in DecidedBy::ALL {
            assert_eq!((by.name(), DecidedBy::from_name(name)), (*name, Some(*by)));
        }
        for (source, name) in RetryAfterSource::ALL {
            assert_eq!((source.name(), RetryAfterSource::from_name(name)), (*name, Some(*source)));
        }
    }

    #[test]
    fn a_refusal_names_field_value_and_allowed() {
        let cases = [
            (r"{}", "failure.kind: null is not allowed; allowed: timeout, transport"),
            (r#"{"kind": "timeout", "category": "fatal"}"#, "failure.category: \"fatal\" is not allowed; allowed: ret"),
            (r#"{"kind": "timeout", "retry_after": "2"}"#, "failure.retry_after: \"2\" is not allowed; allowed: a dur"),
            (r#"{"kind": "timeout", "retry_after": 2}"#, "failure.retry_after: 2 is not allowed"),
            (
                r#"{"kind": "timeout", "retry_forbidden": 1}"#,
                "failure.retry_forbidden: 1 is not allowed; allowed: true",
            ),
            (
                r#"{"kind": "timeout", "decided_by": "x"}"#,
                "failure.decided_by: \"x\" is not allowed; allowed: control, ",
            ),
            (r#"{"kind": "timeout", "colour": 1}"#, "failure.colour: no such field; allowed: kind, category"),
        ];
        for (json, start) in cases {
            let error = serde_json::from_str::<Failure>(json).unwrap_err().to_string();
            assert!(error.starts_with(start), "{error}");
        }
    }

    #[test]
    fn display_is_one_line_for_people() {
        let mut failure = Failure::of(Kind::RateLimit);
        assert_eq!(failure.to_string(), "rate_limit");
        failure.code = Some("slow".into());
        failure.message = Some("Too fast".into());
        failure.retry_after = Some(Span::from_secs(2));
        assert_eq!(failure.to_string(), "rate_limit (slow): Too fast, retry after 2s");
    }
}
