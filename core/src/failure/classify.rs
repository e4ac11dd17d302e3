//! The order in which evidence is believed.
//!
//! 1. Control: a cancellation; nothing revives it.
//! 2. The user's rules.
//! 3. A type of the error that alone says what happened, outermost first.
//! 4. The provider's words: its code, then a specific type, then the status, then a generic code or type; what the
//!    error's fields and message say refines them.
//! 5. Network codes, then types that only wrap what happened.
//! 6. Unknown; an answer that is not usable, where a check of it raised the error.
//!
//! A rate limit that asks for more than an hour is a quota: it comes back by itself, but no call should wait for it.

use super::body::Document;
use super::facts::{Facts, is_success};
use super::types::{Meaning, os_code};
use super::{DecidedBy, Evidence, Failure, Kind, KindSet, Rule};
use super::{answer, error_type, phrases, provider, retry_after, rules};
use crate::Span;

/// A rate limit that asks for a longer wait than this is a quota: windows of rate limits are minutes, those of quotas are
/// hours and days.
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
    if let Some(kind) = error_type::control(&facts.evidence.error_types) {
        return Verdict::new(kind, DecidedBy::Control);
    }
    if let Some(rule) = rules::first(rules, facts) {
        return Verdict::new(rule.kind, DecidedBy::Rule);
    }
    let verdict = in_stream(unruled(facts), facts);
    if verdict.kind == Kind::RateLimit && after.is_some_and(|after| after > LONGEST_RATE_LIMIT) {
        return Verdict::new(Kind::QuotaExhausted, DecidedBy::RetryAfter);
    }
    verdict
}

/// What the error's type says if it is certain, else the provider's words, else the network and uncertain types.
fn unruled(facts: &Facts) -> Verdict {
    let rows = || error_type::known(&facts.evidence.error_types);
    if let Some(row) = rows().find(|row| !row.weak && says_more_than_status(*row, facts)) {
        return Verdict::specific(row.kind, DecidedBy::ErrorType);
    }
    if let Some(verdict) = spoken(facts) {
        return refined(verdict, facts);
    }
    if let Some(kind) = phrases::refine(Kind::Unknown, facts) {
        return Verdict::specific(kind, DecidedBy::Message);
    }
    if let Some(row) = network_code(facts) {
        return Verdict::specific(row.kind, DecidedBy::OsCode);
    }
    if let Some(row) = rows().find(|row| row.weak) {
        return Verdict::specific(row.kind, DecidedBy::ErrorType);
    }
    // What a check of the answer raises is about the answer, whatever it is.
    let about_answer = facts.evidence.in_check.then_some(Verdict::new(Kind::InvalidOutput, DecidedBy::Driver));
    about_answer.unwrap_or(Verdict::new(Kind::Unknown, DecidedBy::Default))
}

/// The caller's cancellation: the error is one, its words say so without any answer, or a proxy saw the caller go
/// (499) and the body does not speak of an error of the server's own.
fn is_cancelled(facts: &Facts) -> bool {
    let known = |word: &str| provider::specific(word).or_else(|| provider::generic(word)).is_some();
    facts.evidence.cancelled
        || match facts.status {
            None => !facts.in_stream && facts.any_word(&provider::cancelled),
            Some(499) => !facts.any_word(&known),
            Some(_) => false,
        }
}

/// Under an error status there was no answer, so that a client failed to parse one says nothing.
fn says_more_than_status(row: Meaning, facts: &Facts) -> bool {
    const ABOUT_ANSWERS: KindSet = KindSet::of(&[Kind::InvalidOutput, Kind::ParseError, Kind::SchemaInvalid]);
    !ABOUT_ANSWERS.contains(row.kind) || facts.evidence.status.is_none_or(is_success)
}

/// What code, specific type, status, generic words and the answer's own ending say, in this order.
fn spoken(facts: &Facts) -> Option<Verdict> {
    let codes = || facts.codes.iter().map(AsRef::as_ref);
    let types = || facts.types.iter().copied();
    let specific = |kind, by| Verdict::specific(kind, by);
    let by_code = codes().find_map(provider::specific).map(|kind| specific(kind, DecidedBy::Code));
    let by_type = || types().find_map(provider::specific).map(|kind| specific(kind, DecidedBy::Type));
    let by_status = || facts.status.and_then(provider::status).map(|kind| Verdict::new(kind, DecidedBy::Status));
    let by_generic_code = || codes().find_map(provider::generic).map(|kind| Verdict::new(kind, DecidedBy::Code));
    let by_generic_type = || types().find_map(provider::generic).map(|kind| Verdict::new(kind, DecidedBy::Type));
    let by_ending = || ended_badly(facts).map(|kind| specific(kind, DecidedBy::Message));
    by_code.or_else(by_type).or_else(by_status).or_else(by_generic_code).or_else(by_generic_type).or_else(by_ending)
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

fn network_code(facts: &Facts) -> Option<Meaning> {
    let codes = [&facts.evidence.os_code, &facts.evidence.provider_code];
    codes.into_iter().flatten().find_map(|code| os_code(code))
}

/// Fields and phrases refine a kind; a word that names a wrong request exactly is left alone.
fn refined(verdict: Verdict, facts: &Facts) -> Verdict {
    if verdict.specific && verdict.kind == Kind::BadRequest {
        return verdict;
    }
    phrases::refine(verdict.kind, facts).map_or(verdict, |kind| Verdict::specific(kind, DecidedBy::Message))
}

/// Inside an answer that had begun, a broken connection or an error that nothing more is known about interrupted it.
fn in_stream(verdict: Verdict, facts: &Facts) -> Verdict {
    match verdict.kind {
        Kind::ServerError if facts.in_stream && !verdict.specific => Verdict::new(Kind::StreamInterrupted, verdict.by),
        Kind::Transport if facts.in_stream => Verdict::new(Kind::StreamInterrupted, verdict.by),
        Kind::Unknown if facts.in_stream && verdict.by == DecidedBy::Default => {
            Verdict::new(Kind::StreamInterrupted, DecidedBy::Driver)
        }
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
        None => may_have_been_sent(facts),
    }
}

/// A certain type says whether the request left; else any link of the chain that says it did not is believed, unless
/// the chain is a group of failures, of which another may have been sent.
fn may_have_been_sent(facts: &Facts) -> bool {
    let names = &facts.evidence.error_types;
    if let Some(row) = error_type::known(names).find(|row| !row.weak) {
        return row.sent;
    }
    let grouped = names.iter().any(|name| name.ends_with("ExceptionGroup"));
    let types_allow = error_type::known(names).all(|row| row.sent);
    let code_allows = network_code(facts).is_none_or(|row| row.sent);
    grouped || (types_allow && code_allows && !facts.any_word(&provider::never_sent))
}
