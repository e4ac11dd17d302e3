//! What vectors cannot hold: bodies of many megabytes, and inputs nobody thought of.

use reprieve::failure::{Body, Evidence, Failure, Kind, classify};
use reprieve::json::Json;
use reprieve::{DecidedBy, Span};
use serde_json::{Value, json};

fn with_body(status: u16, body: impl Into<String>) -> Evidence {
    Evidence { status: Some(status), body: Some(Body::Text(body.into())), ..Evidence::default() }
}

fn json(value: &Value) -> Json {
    Json::parse(&value.to_string()).unwrap()
}

#[test]
fn a_body_over_one_mebibyte_is_not_parsed() {
    let padded = |length: usize| {
        let start = r#"{"error": {"code": "insufficient_quota"}, "pad": ""#;
        let pad = "x".repeat(length - start.len() - 2);
        classify(&with_body(429, format!("{start}{pad}\"}}")), &[])
    };
    assert_eq!(padded(1 << 20).kind, Kind::Billing);
    assert_eq!(padded((1 << 20) + 1).kind, Kind::RateLimit);
}

#[test]
fn a_huge_body_is_not_looked_into() {
    let failure = classify(&with_body(500, "x".repeat(100_000_000)), &[]);
    assert_eq!((failure.kind, failure.message), (Kind::ServerError, None));
}

#[test]
fn a_huge_message_is_cut_at_a_character() {
    for pad in 0..4 {
        let message = "x".repeat(pad) + &"请".repeat(1_000_000);
        let parsed = json!({"error": {"message": message}});
        let body = Some(Body::Json(json(&parsed)));
        let failure = classify(&Evidence { status: Some(400), body, ..Evidence::default() }, &[]);
        let cut = failure.message.unwrap();
        assert!(message.starts_with(&cut) && cut.len() <= 8192 && cut.len() > 8192 - 3, "{}", cut.len());
    }
    let own = Evidence { message: Some("é".repeat(10_000)), ..Evidence::default() };
    assert_eq!(classify(&own, &[]).message.map(|m| m.len()), Some(8192));
}

#[test]
fn a_phrase_beyond_the_cut_is_not_seen() {
    let message = |at: usize| json!({"error": {"message": " ".repeat(at) + "x server is busy"}}).to_string();
    assert_eq!(classify(&with_body(500, message(100)), &[]).kind, Kind::Overloaded);
    assert_eq!(classify(&with_body(500, message(8190)), &[]).kind, Kind::ServerError);
}

#[test]
fn deep_nesting_is_no_document() {
    for depth in [10, 127, 128, 10_000, 400_000] {
        let body = r#"{"error":"#.repeat(depth) + "1" + &"}".repeat(depth);
        assert_eq!(classify(&with_body(503, body), &[]).kind, Kind::Overloaded, "{depth}");
        assert_eq!(classify(&with_body(503, "[".repeat(depth)), &[]).kind, Kind::Overloaded, "{depth}");
    }
}

#[test]
fn an_error_wrapped_too_deep_is_an_echo() {
    let wrapped = |depth: usize| {
        let start = r#"{"error":"#.repeat(depth);
        classify(&with_body(400, start + r#"{"code":"insufficient_quota"}"# + &"}".repeat(depth)), &[]).kind
    };
    assert_eq!((wrapped(1), wrapped(4), wrapped(5)), (Kind::Billing, Kind::Billing, Kind::BadRequest));
}

#[test]
fn the_inner_trace_and_the_message_are_handed_on() {
    let evidence =
        Evidence { inner_trace: Some("0af7".into()), message: Some("own words".into()), ..Evidence::default() };
    let failure = classify(&evidence, &[]);
    assert_eq!(failure.inner_trace.as_deref(), Some("0af7"));
    assert_eq!(failure.message.as_deref(), Some("own words"));
    let both = Evidence { body: Some(Body::Json(json(&json!({"error": {"message": "theirs"}})))), ..evidence };
    assert_eq!(classify(&both, &[]).message.as_deref(), Some("theirs"));
}

#[test]
fn a_failure_of_a_driver_says_what_its_kind_says() {
    let failure = Failure::of(Kind::Timeout);
    assert!(failure.retriable() && failure.service_fault() && !failure.alert() && failure.may_have_executed);
    assert_eq!(failure.decided_by, DecidedBy::Driver);
    assert!(Failure::of(Kind::AuthFailed).alert());
    assert!(!Failure::of(Kind::CircuitOpen).may_have_executed);
}

/// A small generator (xorshift64*), so that a failing input can be found again.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33).unwrap() % below
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.next(from.len())]
    }
}

/// Pieces that mean something to a parser here, in any order.
const PIECES: [&str; 64] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\\",
    "\n",
    "\r\n",
    " ",
    ".",
    "-",
    "+",
    "/",
    ";",
    "=",
    "#",
    "@type",
    "data:",
    "event: error\n",
    "\"error\"",
    "\"code\":",
    "\"message\":",
    "\"details\":",
    "\"retryDelay\":",
    "google.rpc.RetryInfo",
    "null",
    "true",
    "1e999",
    "-1",
    "0",
    "429",
    "99999999999999999999",
    "0.0001",
    "1m26.4s",
    "try again in ",
    "wait ",
    "until ",
    "access on ",
    "2026-09-01",
    " at ",
    "00:00 utc",
    "t00:00:00z",
    "Sun, 06 Nov 1994",
    " 08:49:37",
    " GMT",
    "Sunday, 06-Nov-94",
    "后",
    "重试",
    "秒",
    "分钟",
    "请求过于频繁",
    "²",
    "٢",
    "é",
    "\u{feff}",
    "\0",
    "requested",
    "limit",
    "per day",
    "Exception",
    "seconds",
    "µs",
];

fn soup(random: &mut Random) -> String {
    (0..random.next(24)).map(|_| random.pick(&PIECES)).collect()
}

#[test]
fn no_input_panics_and_what_comes_out_is_bounded() {
    let names = [
        "retry-after",
        "retry-after-ms",
        "date",
        "x-ratelimit-reset-tokens",
        "x-ratelimit-remaining-tokens",
        "anthropic-ratelimit-unified-reset",
        "ratelimit",
        "grpc-retry-pushback-ms",
        "x-should-retry",
        "content-type",
        "x-amzn-errortype",
        "ratelimit-reset-é",
    ];
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for round in 0..5_000 {
        let text = soup(&mut random);
        let evidence = Evidence {
            status: [None, Some(200), Some(429), Some(499), Some(500), Some(u16::MAX)][random.next(6)],
            headers: (0..random.next(4)).map(|_| (random.pick(&names).to_owned(), soup(&mut random))).collect(),
            body: [
                None,
                Some(Body::Text(text.clone())),
                Some(Body::Json(json(&json!({"error": {"message": text, "code": text, "retry_after": text}})))),
                Some(Body::Json(Json::Text(text.clone()))),
            ][random.next(4)]
            .clone(),
            provider_code: (random.next(4) == 0).then(|| soup(&mut random)),
            error_types: (0..random.next(3)).map(|_| soup(&mut random)).collect(),
            message: Some(soup(&mut random)),
            in_stream: random.next(4) == 0,
            wall_now_ms: [None, Some(0), Some(1_696_004_797_000), Some(u64::MAX)][random.next(4)],
            ..Evidence::default()
        };
        let failure = classify(&evidence, &[]);
        let after = failure.retry_after.map_or(0, Span::as_nanos);
        assert!(after.is_multiple_of(1_000_000) || after == u64::MAX, "{round}: {after} {evidence:?}");
        assert_eq!(failure.retry_after.is_some(), failure.retry_after_source.is_some(), "{round}");
        assert_eq!(failure, classify(&evidence, &[]), "{round}");
        assert_eq!(Failure::from_json(&failure.to_json()).unwrap(), failure, "{round}");
    }
}
