//! The grammar of markers: `#[entry,entry,...]` in a prompt, played one entry per request.

use crate::behaviour::{Step, allowed};

/// What a prompt asks for: the marker as written, and the steps it stands for.
#[derive(Debug, PartialEq)]
pub struct Marker {
    /// The text between the brackets, without spaces; requests are counted under it.
    pub name: String,
    /// Each played as often as it says, and then the last one for ever, or all of them from the start.
    steps: Vec<Step>,
    last: Step,
    again: bool,
}

/// The word at the end of a list that starts over.
const AGAIN: &str = "again";

/// A marker that is none of the gateway's: a mistake in the test, and to be told as one.
#[derive(Debug, PartialEq)]
pub struct UnknownMarker(String);

impl Marker {
    /// Reads the last marker of a prompt; a prompt without one means `ok`.
    pub fn of_prompt(prompt: &str) -> Result<Self, UnknownMarker> {
        let Some((_, opened)) = prompt.rsplit_once("#[") else {
            return Self::parse("ok");
        };
        match opened.split_once(']') {
            Some((inside, _)) => Self::parse(inside),
            None => Err(UnknownMarker(format!("the marker `#[{}` is never closed", shortened(opened)))),
        }
    }

    fn parse(inside: &str) -> Result<Self, UnknownMarker> {
        let entries: Vec<_> = inside.split(',').map(str::trim).collect();
        let again = entries.len() > 1 && entries.last() == Some(&AGAIN);
        let mut steps = entries[..entries.len() - usize::from(again)]
            .iter()
            .map(|entry| Step::parse(entry).ok_or_else(|| unknown(inside, entry)))
            .collect::<Result<Vec<_>, _>>()?;
        if steps.last().is_some_and(|last| last.then_ok && !again) {
            steps.push(Step::ok());
        }
        let last = steps.pop().unwrap_or_else(Step::ok);
        let name = entries.join(",");
        Ok(Self { name, steps, last, again })
    }

    /// The step that the request of this number meets, counting from 1.
    pub fn step(&self, attempt: u64) -> &Step {
        let round = self.steps.iter().map(|step| step.times).sum::<u64>() + self.last.times;
        let mut left = if self.again { (attempt - 1) % round + 1 } else { attempt };
        for step in &self.steps {
            if left <= step.times {
                return step;
            }
            left -= step.times;
        }
        &self.last
    }
}

impl UnknownMarker {
    pub fn message(&self) -> String {
        format!("{}; allowed: {}", self.0, allowed())
    }
}

fn unknown(inside: &str, entry: &str) -> UnknownMarker {
    let (inside, entry) = (shortened(inside), shortened(entry));
    UnknownMarker(format!("unknown marker `#[{inside}]`: `{entry}` is no behaviour of the gateway"))
}

/// A marker that was never closed may have the rest of a long prompt in it.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::Marker;

    fn name(prompt: &str) -> String {
        Marker::of_prompt(prompt).map_or_else(|fault| fault.message(), |marker| marker.name)
    }

    fn played(prompt: &str, requests: u64) -> String {
        let marker = Marker::of_prompt(prompt).expect("a known marker");
        let names: Vec<_> = (1..=requests).map(|attempt| marker.step(attempt).name.as_str()).collect();
        names.join(" ")
    }

    #[test]
    fn the_last_marker_of_a_prompt_counts() {
        assert_eq!(name("hello"), "ok");
        assert_eq!(name("#hello] [429] # [500]"), "ok");
        assert_eq!(name("say #[429] please"), "429");
        assert_eq!(name("#[wrong] then #[500]"), "500");
        assert_eq!(name("#[ 500, 429 ,ok ]"), "500,429,ok");
    }

    #[test]
    fn a_list_is_played_in_order_and_its_last_entry_repeats() {
        assert_eq!(played("#[429]", 3), "429 429 429");
        assert_eq!(played("#[500,429,ok]", 5), "500 429 ok ok ok");
        assert_eq!(played("#[ok,500]", 3), "ok 500 500");
    }

    #[test]
    fn a_list_that_ends_in_again_starts_over() {
        assert_eq!(played("#[ok,ok,slow=9,again]", 7), "ok ok slow=9 ok ok slow=9 ok");
        assert_eq!(played("#[ok,429x2,again]", 7), "ok 429 429 ok 429 429 ok");
        assert!(Marker::of_prompt("#[again]").is_err(), "again what?");
        assert!(Marker::of_prompt("#[ok,again,ok]").is_err(), "only at the end");
    }

    #[test]
    fn what_ends_by_itself_is_followed_by_the_next_entry_or_by_ok() {
        assert_eq!(played("#[429x2]", 4), "429 429 ok ok");
        assert_eq!(played("#[429x2,500]", 4), "429 429 500 500");
        assert_eq!(played("#[500,429x2]", 5), "500 429 429 ok ok");
        assert_eq!(played("#[retry-after=1]", 3), "retry-after=1 ok ok");
        assert_eq!(played("#[retry-ms=5,500]", 3), "retry-ms=5 500 500");
    }

    #[test]
    fn an_unknown_marker_is_named_with_what_is_allowed() {
        let message = name("#[500,bogus]");
        for part in ["`#[500,bogus]`", "`bogus`", "sse-cut=N", "slow=MS", "400..599xN"] {
            assert!(message.contains(part), "{part} in {message}");
        }
        for prompt in ["#[]", "#[429,]", "#[,429]", "#[200]", "#[#[]"] {
            assert!(Marker::of_prompt(prompt).is_err(), "{prompt}");
        }
    }

    #[test]
    fn a_marker_that_is_never_closed_is_unknown() {
        let message = name(&format!("#[429 {}", "x".repeat(5000)));
        assert!(message.starts_with("the marker `#[429 xxx"), "{message}");
        assert!(message.len() < 600, "{message}");
    }
}
