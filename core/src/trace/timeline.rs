//! A trace for people: a line for each receipt, with its span of time drawn to scale.

use crate::json::Json;
use crate::span::decimal;
use crate::text::said;

/// How many characters the whole call is wide.
const WIDTH: u64 = 40;

/// The timeline of the call whose records these are: one line of JSON each, as a sink gets them.
///
/// ```
/// use reprieve::{Call, Failure, Kind, Outcome, Policy, Span};
///
/// let mut call = Call::new(Policy::default(), 7);
/// let now = Span::from_secs(100);
/// let _attempt = call.begin(now)?;
/// let _wait = call.on_outcome(now.plus(Span::from_secs(1)), 1, Outcome::failed(Failure::of(Kind::Overloaded)))?;
/// let timeline = reprieve::trace::timeline("4bf9", call.take_lines());
/// assert!(timeline.starts_with("trace 4bf9\n  #1 primary    |"), "{timeline}");
/// assert!(timeline.contains("| overloaded -> retry in 0."));
/// # Ok::<(), reprieve::Misuse>(())
/// ```
#[must_use]
pub fn timeline<L: AsRef<str>>(trace_id: &str, lines: impl IntoIterator<Item = L>) -> String {
    let records: Vec<Json> = lines.into_iter().filter_map(|line| Json::parse(line.as_ref()).ok()).collect();
    let is_end = |record: &&Json| text(record, "record") == Some("call_ended");
    let ended = records.iter().find(is_end);
    let receipts = records.iter().filter(|record| record.get("record").is_none());
    let until = |r: &Json| number(r, "started_ms") + number(r, "latency_ms") + waited(r);
    let seen = receipts.clone().map(until).max().unwrap_or(0);
    let total = ended.map_or(seen, |end| number(end, "elapsed_ms")).max(1);
    let mut out = said!["trace ", trace_id];
    receipts.for_each(|receipt| line(&mut out, receipt, total));
    if let Some(end) = ended {
        out.push_str(&said!["\n end ", text(end, "outcome").unwrap_or("?")]);
        if let Some(reason) = text(end, "reason") {
            out.push_str(&said![" (", reason, ")"]);
        }
        let elapsed = seconds(number(end, "elapsed_ms"));
        out.push_str(&said![": ", number(end, "attempts"), " attempts, ", elapsed]);
    }
    out
}

fn line(out: &mut String, r: &Json, total: u64) {
    let name = r.get("attempt").and_then(Json::as_u64).map_or("--".to_owned(), |n| said!["#", n]);
    let (kind, reason) = (text(r, "kind"), text(r, "reason"));
    let what = kind.or(text(r, "outcome")).unwrap_or("?");
    let decision = text(r, "decision").unwrap_or("?");
    out.push('\n');
    out.push_str(&" ".repeat(4_usize.saturating_sub(name.len())));
    out.push_str(&said![name, " "]);
    out.extend(text(r, "target").unwrap_or("?").chars().chain(std::iter::repeat(' ')).take(10));
    out.push_str(" |");
    bar(out, r, total);
    out.push_str(&said!["| ", what, " -> ", decision]);
    if let Some(ms) = r.get("delay_ms").and_then(Json::as_u64) {
        out.push_str(&said![" in ", seconds(ms)]);
    }
    if let Some(reason) = reason.filter(|_| reason != kind) {
        out.push_str(&said![" (", reason, ")"]);
    }
}

/// When the attempt began, how long it took, how long was waited then.
fn bar(out: &mut String, r: &Json, total: u64) {
    let cells = |ms: u64| ms.saturating_mul(WIDTH) / total;
    let begun = cells(number(r, "started_ms"));
    let ended = begun.saturating_add(cells(number(r, "latency_ms")).max(1));
    let over = ended.saturating_add(cells(waited(r)));
    out.extend((0..=WIDTH).map(|cell| match cell {
        _ if cell < begun => ' ',
        _ if cell < ended => '█',
        _ if cell < over => '·',
        _ => ' ',
    }));
}

/// The wait that follows a receipt, in ms.
fn waited(r: &Json) -> u64 {
    if text(r, "decision") == Some("retry") { number(r, "delay_ms") } else { 0 }
}

fn text<'a>(record: &'a Json, name: &str) -> Option<&'a str> {
    record.get(name)?.as_str()
}

fn number(record: &Json, name: &str) -> u64 {
    record.get(name).and_then(Json::as_u64).unwrap_or(0)
}

/// `0.25 s`, `12 s`.
fn seconds(ms: u64) -> String {
    let mut out = String::new();
    decimal(ms, 1000, &mut out);
    out.push_str(" s");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(attempt: &str, started: u64, latency: u64, delay: Option<u64>) -> String {
        let decision = if delay.is_some() { "retry" } else { "stop" };
        let delay = delay.map_or("null".to_owned(), |ms| ms.to_string());
        format!(
            r#"{{"attempt":{attempt},"target":"primary","started_ms":{started},"latency_ms":{latency},
            "outcome":"failure","kind":"timeout","decision":"{decision}","reason":"timeout","delay_ms":{delay}}}"#
        )
    }

    #[test]
    fn spans_are_drawn_to_scale() {
        let ended = r#"{"record":"call_ended","outcome":"failure","reason":"attempts_exhausted","attempts":2,"elapsed_ms":4000}"#;
        let lines = [receipt("1", 0, 1000, Some(2000)), receipt("null", 3000, 1000, None), ended.to_owned()];
        let drawn = timeline("ab", &lines);
        let rows: Vec<&str> = drawn.lines().collect();
        assert_eq!(rows[0], "trace ab");
        assert_eq!(
            rows[1],
            format!(
                "  #1 primary    |{}{}{} | timeout -> retry in 2 s",
                "█".repeat(10),
                "·".repeat(20),
                " ".repeat(10)
            )
        );
        assert_eq!(rows[2], format!("  -- primary    |{}{} | timeout -> stop", " ".repeat(30), "█".repeat(10)));
        assert_eq!(rows[3], " end failure (attempts_exhausted): 2 attempts, 4 s");
    }

    #[test]
    fn a_call_without_records_has_an_empty_timeline() {
        assert_eq!(timeline("ab", [""; 0]), "trace ab");
        assert_eq!(timeline("ab", ["no json"]), "trace ab");
        assert_eq!(seconds(63), "0.063 s");
        assert_eq!(seconds(1250), "1.25 s");
    }
}
