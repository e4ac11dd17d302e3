//! A failure as data: the names of its parts, its constructor for drivers, and its JSON.

use std::fmt;

use super::{Body, Category, DecidedBy, Evidence, Failure, Kind, KindSet, RetryAfterSource};
use crate::json::at::At;
use crate::json::form::{self, Form, Record, Value};
use crate::json::{Fields, Json};

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

        impl Value for Option<$type> {
            fn read(&mut self, at: &At<'_>) {
                let all = <$type>::ALL;
                *self = Some(all[at.index(all.len(), &|i| all[i].1)].0);
            }

            fn write(&mut self, out: &mut Fields<'_>, name: &str) {
                out.text(name, self.map(<$type>::name));
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

/// `retry_after_ns` is in nanoseconds. `retry_after` may be given in its place, as a duration such as `"2s"`.
impl Record for Failure {
    fn fields(&mut self, form: &mut Form<'_, '_>) {
        form.field("kind", &mut self.kind);
        form.derived("category", &mut |out| out.text("category", self.kind.category().name()));
        form.field("code", &mut self.code);
        form.field("message", &mut self.message);
        if !form.writes() {
            form.derived("retry_after", &mut |_| ());
        }
        form.field("retry_after_ns", &mut self.retry_after);
        form.field("retry_after_source", &mut self.retry_after_source);
        let mut decided_by = Some(self.decided_by);
        form.field("decided_by", &mut decided_by);
        self.decided_by = decided_by.unwrap_or(self.decided_by);
        form.field("retry_forbidden", &mut self.retry_forbidden);
        form.field("may_have_executed", &mut self.may_have_executed);
        form.field("inner_trace", &mut self.inner_trace);
    }
}

/// Absent fields are written as `null`. Only `kind` is required, the rest is as [`Failure::of`] has it.
impl Value for Option<Failure> {
    fn read(&mut self, at: &At<'_>) {
        let failure = self.insert(Failure::of(Kind::Unknown));
        let object = form::object(at, failure);
        *failure = Failure::of(object.need("kind", |at| at.kind(|_| true)));
        // It follows from the kind; a different one is a damaged record.
        if let Some(at) = object.given("category") {
            at.choice(&[(failure.category().name(), ())]);
        }
        failure.retry_after = object.given("retry_after").map(|at| at.span());
        failure.fields(&mut Form::Read(object));
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        match self {
            Some(failure) => failure.write(out, name),
            None => out.text(name, None),
        }
    }
}

impl Value for Kind {
    fn read(&mut self, at: &At<'_>) {
        *self = at.kind(|_| true);
    }

    fn write(&mut self, out: &mut Fields<'_>, name: &str) {
        out.text(name, self.name());
    }
}

const FACTS: [&str; 13] = [
    "status",
    "headers",
    "body",
    "provider_code",
    "provider_type",
    "error_types",
    "os_code",
    "message",
    "in_stream",
    "in_check",
    "cancelled",
    "inner_trace",
    "wall_now_ms",
];

impl Evidence {
    /// An object, or the message alone where nothing else is known, as of most errors.
    pub(crate) fn read(at: &At<'_>) -> Evidence {
        let mut evidence = Evidence::default();
        if let Json::Text(message) = at.value {
            evidence.message = Some(message.clone());
            return evidence;
        }
        let fields = at.object(&FACTS);
        let status = fields.maybe("status", |at| at.count(0, u16::MAX.into()));
        evidence.status = status.and_then(|status| u16::try_from(status).ok());
        evidence.headers = fields.maybe("headers", |at| at.items(header)).unwrap_or_default();
        evidence.body = fields.maybe("body", |at| match at.value {
            Json::Text(text) => Body::Text(text.clone()),
            parsed => Body::Json(parsed.clone()),
        });
        fields.fill("provider_code", &mut evidence.provider_code);
        fields.fill("provider_type", &mut evidence.provider_type);
        evidence.error_types = fields.maybe("error_types", |at| at.items(At::words)).unwrap_or_default();
        fields.fill("os_code", &mut evidence.os_code);
        fields.fill("message", &mut evidence.message);
        fields.fill("in_stream", &mut evidence.in_stream);
        fields.fill("in_check", &mut evidence.in_check);
        fields.fill("cancelled", &mut evidence.cancelled);
        fields.fill("inner_trace", &mut evidence.inner_trace);
        fields.fill("wall_now_ms", &mut evidence.wall_now_ms);
        evidence
    }
}

/// A name and its value.
fn header(at: &At<'_>) -> (String, String) {
    match at.value.as_list() {
        Some([Json::Text(name), Json::Text(value)]) => (name.clone(), value.clone()),
        _ => at.refuse("a name and a value, both text"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    #[test]
    fn a_text_is_evidence_with_a_message_alone() {
        let read = |json: &str| Evidence::from_json(json).expect("evidence");
        assert_eq!(read(r#""busy""#), read(r#"{"message": "busy"}"#));
    }

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
        assert_eq!(Failure::from_json(&failure.to_json()).unwrap(), failure);
    }

    #[test]
    fn every_kind_and_name_reads_back() {
        for kind in Kind::all() {
            assert_eq!(Failure::from_json(&Failure::of(kind).to_json()).unwrap(), Failure::of(kind));
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
            (r"{}", r#"kind: null is not allowed; it takes one of "timeout", "transport""#),
            (
                r#"{"kind": "timeout", "category": "fatal"}"#,
                r#"category: "fatal" is not allowed; it takes one of "retriable""#,
            ),
            (r#"{"kind": "timeout", "retry_after": "2"}"#, r#"retry_after: "2" is not allowed; it takes a duration"#),
            (r#"{"kind": "timeout", "retry_after": 2}"#, "retry_after: 2 is not allowed"),
            (
                r#"{"kind": "timeout", "retry_forbidden": 1}"#,
                "retry_forbidden: 1 is not allowed; it takes true or false",
            ),
            (
                r#"{"kind": "timeout", "decided_by": "x"}"#,
                r#"decided_by: "x" is not allowed; it takes one of "control", "#,
            ),
            (
                r#"{"kind": "timeout", "colour": 1}"#,
                "colour: 1 is not allowed; it takes no such field; the fields here are kind, category",
            ),
        ];
        for (json, start) in cases {
            let error = Failure::from_json(json).unwrap_err().why;
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
