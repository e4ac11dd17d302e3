//! The order in which evidence is believed.
//!
//! 1. Control: a cancellation; nothing revives it.
//! 2. The user's rules.
//! 3. The error's type, outermost first.
//! 4. The provider's words: its code, then a specific type, then the status, then a generic code or type; what the
//!    error's fields and message say refines them.
//! 5. Network codes.
//! 6. Unknown.
//!
//! A rate limit that asks for more than an hour is a quota: it comes back by itself, but no call should wait for it.

use super::body::Document;
use super::facts::{Facts, is_success};
use super::types::{CodeRow, OS_CODES, TYPES, TypeRow};
use super::{Category, DecidedBy, Evidence, Failure, Kind, KindSet, Rule};
use super::{answer, phrases, provider, retry_after, rules};
use crate::Span;

/// A rate limit that asks for a longer wait than this is a quota (DESIGN §6).
const LONGEST_RATE_LIMIT: Span = Span::from_secs(3600);

/// Classifies one failure. The same evidence and rules give the same failure everywhere; no input panics.
///
/// ```
/// use reprieve::failure::{Evidence, Kind, classify};
/// let evidence = Evidence {
///     status: Some(429),
///     headers: vec![("Retry-After".into(), "2".into())],
///     ..Evidence::default()
/// };
/// let failure = classify(&evidence, &[]);
/// assert_eq!(failure.kind, Kind::RateLimit);
/// assert_eq!(failure.retry_after, Some(reprieve::Span::from_secs(2)));
/// ```
#[must_use]
pub fn classify(evidence: &Evidence, rules: &[Rule]) -> Failure {
    let document = Document::read(evidence);
    let facts = Facts::gather(evidence, &document);
    let hint = retry_after::find(&facts);
    let verdict = decide(&facts, rules, hint.map(|(after, _)| after));
    Failure {
        kind: verdict.kind,
        code: facts.code().map(str::to_owned),
        message: facts.message.or(facts.own_message).map(str::to_owned),
        retry_after: hint.map(|(after, _)| after),
        retry_after_source: hint.map(|(_, source)| source),
        decided_by: verdict.by,
        retry_forbidden: retry_after::forbidden(evidence),
        may_have_executed: may_have_executed(&facts),
        inner_trace: evidence.inner_trace.clone(),
    }
}

/// A kind, and which rule gave it.
#[derive(Clone, Copy)]
struct Verdict {
    kind: Kind,
    by: DecidedBy,
    /// A word that means one thing wherever it stands gave it.
    specific: bool,
}

impl Verdict {
    const fn new(kind: Kind, by: DecidedBy) -> Verdict {
        Verdict { kind, by, specific: false }
    }

    const fn specific(kind: Kind, by: DecidedBy) -> Verdict {
        Verdict { kind, by, specific: true }
    }
}

fn decide(facts: &Facts, rules: &[Rule], after: Option<Span>) -> Verdict {
    if is_cancelled(facts) {
        return Verdict::new(Kind::Cancelled, DecidedBy::Control);
    }
    if let Some(row) = outermost_control(facts) {
        return Verdict::new(row.kind, DecidedBy::Control);
    }
    if let Some(rule) = rules::first(rules, facts) {
        return Verdict::new(rule.kind, DecidedBy::Rule);
    }
    if let Some(row) = known_types(facts).find(|row| says_more_than_status(row, facts)) {
        return Verdict::new(row.kind, DecidedBy::ErrorType);
    }
    let verdict = in_stream(refined(spoken(facts), facts), facts);
    if verdict.kind == Kind::RateLimit && after.is_some_and(|after| after > LONGEST_RATE_LIMIT) {
        return Verdict::new(Kind::QuotaExhausted, DecidedBy::RetryAfter);
    }
    verdict
}

/// The caller's cancellation: the error is one, its words say so without any answer, or a proxy saw the caller go
/// (499) and the body does not speak of an error of the server's own.
fn is_cancelled(facts: &Facts) -> bool {
    let known = |word: &str| provider::specific(word).or_else(|| provider::generic(word)).is_some();
    let mut words = facts.codes.iter().map(AsRef::as_ref).chain(facts.types.iter().copied());
    facts.evidence.cancelled
        || match facts.status {
            None => !facts.in_stream && words.any(provider::cancelled),
            Some(499) => !words.any(known),
            Some(_) => false,
        }
}

/// A control kind counts only for the error itself: a cancelled cause is not the caller's cancellation.
fn outermost_control(facts: &Facts) -> Option<&'static TypeRow> {
    let name = facts.evidence.error_types.first()?;
    TYPES.iter().find(|row| rules::names_type(row.name, name)).filter(|row| row.kind.category() == Category::Control)
}

/// The rows of the error's types, outermost first, control kinds left out.
fn known_types<'a>(facts: &Facts<'a>) -> impl Iterator<Item = &'static TypeRow> + use<'a> {
    let row = |name: &String| TYPES.iter().find(|row| rules::names_type(row.name, name));
    facts.evidence.error_types.iter().filter_map(row).filter(|row| row.kind.category() != Category::Control)
}

/// Under an error status there was no answer, so that a client failed to parse one says nothing.
fn says_more_than_status(row: &TypeRow, facts: &Facts) -> bool {
    const ABOUT_ANSWERS: KindSet = KindSet::of(&[Kind::InvalidOutput, Kind::ParseError, Kind::SchemaInvalid]);
    !ABOUT_ANSWERS.contains(row.kind) || facts.evidence.status.is_none_or(is_success)
}

/// What code, specific type, status, generic words and network codes say, in this order.
fn spoken(facts: &Facts) -> Verdict {
    let codes = || facts.codes.iter().map(AsRef::as_ref);
    let types = || facts.types.iter().copied();
    if let Some(kind) = codes().find_map(provider::specific) {
        return Verdict::specific(kind, DecidedBy::Code);
    }
    if let Some(kind) = types().find_map(provider::specific) {
        return Verdict::specific(kind, DecidedBy::Type);
    }
    if let Some(kind) = facts.status.and_then(provider::status) {
        return Verdict::new(kind, DecidedBy::Status);
    }
    if let Some(kind) = codes().find_map(provider::generic) {
        return Verdict::new(kind, DecidedBy::Code);
    }
    if let Some(kind) = types().find_map(provider::generic) {
        return Verdict::new(kind, DecidedBy::Type);
    }
    if let Some(kind) = ended_badly(facts) {
        return Verdict::specific(kind, DecidedBy::Message);
    }
    network_code(facts).map_or(Verdict::new(Kind::Unknown, DecidedBy::Default), |row| {
        Verdict::specific(row.kind, DecidedBy::OsCode)
    })
}

/// What an answer without an error says of how it ended.
fn ended_badly(facts: &Facts) -> Option<Kind> {
    if facts.error.is_some_and(|error| error.explicit) {
        return None;
    }
    let empty = facts.blank || facts.document.is_some_and(answer::is_empty);
    let success = facts.status.is_some_and(is_success) && !facts.in_stream;
    facts.document.and_then(answer::ending).or((empty && success).then_some(Kind::InvalidOutput))
}

fn network_code(facts: &Facts) -> Option<&'static CodeRow> {
    let codes = [&facts.evidence.os_code, &facts.evidence.provider_code];
    codes.into_iter().flatten().find_map(|code| OS_CODES.iter().find(|row| row.code == code))
}

/// Fields and phrases refine a kind; a word that names a wrong request exactly is left alone.
fn refined(verdict: Verdict, facts: &Facts) -> Verdict {
    if verdict.by == DecidedBy::OsCode || (verdict.specific && verdict.kind == Kind::BadRequest) {
        return verdict;
    }
    phrases::refine(verdict.kind, facts).map_or(verdict, |kind| Verdict::specific(kind, DecidedBy::Message))
}

/// An error inside a stream that nothing more is known about interrupted it.
fn in_stream(verdict: Verdict, facts: &Facts) -> Verdict {
    match verdict.kind {
        Kind::ServerError if facts.in_stream && !verdict.specific => {
            Verdict::new(Kind::StreamInterrupted, verdict.by)
        }
        Kind::Unknown if facts.in_stream => Verdict::new(Kind::StreamInterrupted, DecidedBy::Driver),
        _ => verdict,
    }
}

/// False where the server cannot have acted: it was never reached, had no capacity (529), or refused the request.
fn may_have_executed(facts: &Facts) -> bool {
    if facts.evidence.in_stream {
        return true;
    }
    match facts.evidence.status.or(facts.status) {
        Some(408 | 409 | 499) => true,
        Some(status) => status != 529 && !(400..500).contains(&status),
        None => !never_sent(facts),
    }
}

/// Some link of the chain says that the request never left; in a group, where several requests may have failed, all.
fn never_sent(facts: &Facts) -> bool {
    let group = |name: &String| name.ends_with("ExceptionGroup") || name.ends_with("AggregateError");
    let grouped = facts.evidence.error_types.iter().any(group);
    let unsent_types =
        known_types(facts).any(|row| !row.sent) && (!grouped || known_types(facts).all(|row| !row.sent));
    unsent_types || network_code(facts).is_some_and(|row| !row.sent)
}
