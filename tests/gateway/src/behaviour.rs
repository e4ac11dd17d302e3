//! What the gateway can do to a request: the words a marker is made of.

use std::time::Duration;

use Behaviour as B;

/// One thing that can happen to one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Behaviour {
    Ok,
    Status(u16),
    Slow(Duration),
    /// Until its drill has made so many requests, this one among them.
    Hold(usize),
    Reset,
    Quota,
    Daily,
    Context,
    Filter,
    /// A call of the tool of this number.
    Tool(usize),
    /// An answer in the form that the request asks for.
    Json,
    Html,
    Empty,
    /// So many bytes of an answer whose length was announced.
    Cut(usize),
    /// To the very same address.
    Redirect,
    /// Sent as it was written, so that a test can try "1.0" as well as "1".
    RetryAfter(String),
    RetryDate(u64),
    RetryMs(String),
    /// An answer cut short at the limit of tokens.
    Truncated,
    SseWhole(usize),
    SseCut(usize),
    SseEof(usize),
    SseVoid,
    SseError(usize),
    SseErrorText(usize),
    SseErrorRaw(usize),
    SseAgain(usize),
    SseStall(usize),
    SseIdle(usize),
    SsePings(usize),
    SseFirst(Duration),
    SseSlow(Duration),
}

/// An entry of a marker: a behaviour and how many requests it lasts.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The entry without its count: "429" of "429x2".
    pub name: String,
    pub behaviour: Behaviour,
    pub times: u64,
    /// Whether `ok` follows when nothing else does.
    pub then_ok: bool,
}

impl Behaviour {
    /// Only a stream can go like this.
    pub fn needs_stream(&self) -> bool {
        matches!(
            self,
            B::SseWhole(_)
                | B::SseCut(_)
                | B::SseEof(_)
                | B::SseVoid
                | B::SseError(_)
                | B::SseErrorText(_)
                | B::SseErrorRaw(_)
                | B::SseAgain(_)
                | B::SseStall(_)
                | B::SseIdle(_)
                | B::SsePings(_)
                | B::SseFirst(_)
                | B::SseSlow(_)
        )
    }
}

impl Step {
    pub fn ok() -> Self {
        Self { name: "ok".to_owned(), behaviour: B::Ok, times: 1, then_ok: false }
    }

    /// Reads one entry; nothing if it is no behaviour.
    pub fn parse(entry: &str) -> Option<Self> {
        if entry.starts_with(|first: char| first.is_ascii_digit()) {
            return status(entry);
        }
        let (name, value) = match entry.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (entry, None),
        };
        WORDS.iter().filter(|word| word.name() == name).find_map(|word| {
            Some(Self { name: entry.to_owned(), behaviour: word.takes.read(value)?, times: 1, then_ok: word.then_ok })
        })
    }
}

/// Every entry that [`Step::parse`] reads, for the message about one that it does not.
pub fn allowed() -> String {
    let words = WORDS.iter().map(|word| word.form);
    let all: Vec<_> = words.chain(["400..599", "400..599xN"]).collect();
    format!("{}, or a list of these with commas", all.join(", "))
}

/// Past these a test has a typing error, not a need.
const MOST_TIMES: u64 = 10_000;
const MOST_FRAMES: u64 = 100_000;
const LONGEST_PAUSE_MS: u64 = 600_000;
const LONGEST_DATE_S: u64 = 1_000_000_000;

struct Word {
    /// The name, and what stands for the value it takes.
    form: &'static str,
    takes: Takes,
    then_ok: bool,
}

enum Takes {
    Nothing(Behaviour),
    Frames(fn(usize) -> Behaviour),
    Pause(fn(Duration) -> Behaviour),
    Ahead(fn(u64) -> Behaviour),
    Text(fn(String) -> Behaviour),
}

const fn word(form: &'static str, takes: Takes) -> Word {
    Word { form, takes, then_ok: false }
}

const fn once(form: &'static str, takes: Takes) -> Word {
    Word { form, takes, then_ok: true }
}

const WORDS: &[Word] = &[
    word("ok", Takes::Nothing(B::Ok)),
    word("slow", Takes::Nothing(B::Slow(Duration::from_secs(5)))),
    word("slow=MS", Takes::Pause(B::Slow)),
    word("hold=N", Takes::Frames(B::Hold)),
    word("reset", Takes::Nothing(B::Reset)),
    word("quota", Takes::Nothing(B::Quota)),
    word("daily", Takes::Nothing(B::Daily)),
    word("context", Takes::Nothing(B::Context)),
    word("filter", Takes::Nothing(B::Filter)),
    word("tool=N", Takes::Frames(B::Tool)),
    word("json", Takes::Nothing(B::Json)),
    word("html", Takes::Nothing(B::Html)),
    word("empty", Takes::Nothing(B::Empty)),
    word("cut=N", Takes::Frames(B::Cut)),
    once("redirect", Takes::Nothing(B::Redirect)),
    once("retry-after=S", Takes::Text(B::RetryAfter)),
    once("retry-date=S", Takes::Ahead(B::RetryDate)),
    once("retry-ms=N", Takes::Text(B::RetryMs)),
    word("truncated", Takes::Nothing(B::Truncated)),
    word("sse-whole=N", Takes::Frames(B::SseWhole)),
    word("sse-cut=N", Takes::Frames(B::SseCut)),
    word("sse-eof=N", Takes::Frames(B::SseEof)),
    word("sse-void", Takes::Nothing(B::SseVoid)),
    word("sse-error=N", Takes::Frames(B::SseError)),
    word("sse-error-text=N", Takes::Frames(B::SseErrorText)),
    word("sse-error-raw=N", Takes::Frames(B::SseErrorRaw)),
    word("sse-again=N", Takes::Frames(B::SseAgain)),
    word("sse-stall=N", Takes::Frames(B::SseStall)),
    word("sse-idle=N", Takes::Frames(B::SseIdle)),
    word("sse-pings=N", Takes::Frames(B::SsePings)),
    word("sse-first=MS", Takes::Pause(B::SseFirst)),
    word("sse-slow=MS", Takes::Pause(B::SseSlow)),
];

impl Word {
    fn name(&self) -> &'static str {
        self.form.split('=').next().unwrap_or(self.form)
    }
}

impl Takes {
    fn read(&self, value: Option<&str>) -> Option<Behaviour> {
        match (self, value) {
            (Self::Nothing(behaviour), None) => Some(behaviour.clone()),
            (Self::Frames(make), Some(value)) => {
                let count = number(value, MOST_FRAMES)?;
                Some(make(usize::try_from(count).ok()?))
            }
            (Self::Pause(make), Some(value)) => {
                number(value, LONGEST_PAUSE_MS).map(|ms| make(Duration::from_millis(ms)))
            }
            (Self::Ahead(make), Some(value)) => number(value, LONGEST_DATE_S).map(make),
            (Self::Text(make), Some(value)) => decimal(value).map(|text| make(text.to_owned())),
            _ => None,
        }
    }
}

fn status(entry: &str) -> Option<Step> {
    let (code, times) = match entry.split_once('x') {
        Some((code, times)) => (code, Some(number(times, MOST_TIMES)?)),
        None => (entry, None),
    };
    let known = number(code, 599).filter(|code| *code >= 400)?;
    Some(Step {
        name: code.to_owned(),
        behaviour: B::Status(u16::try_from(known).ok()?),
        times: times.unwrap_or(1),
        then_ok: times.is_some(),
    })
    .filter(|step| step.times > 0)
}

fn number(text: &str, most: u64) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|_| digits)?;
    (value <= most).then_some(value)
}

fn decimal(text: &str) -> Option<&str> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (digits(whole) && digits(fraction)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::{Behaviour, Duration, Step};

    fn read(entry: &str) -> Option<(Behaviour, u64, bool)> {
        Step::parse(entry).map(|step| (step.behaviour, step.times, step.then_ok))
    }

    #[test]
    fn statuses() {
        assert_eq!(read("400"), Some((Behaviour::Status(400), 1, false)));
        assert_eq!(read("599"), Some((Behaviour::Status(599), 1, false)));
        assert_eq!(read("429x3"), Some((Behaviour::Status(429), 3, true)));
        for wrong in ["399", "600", "200", "4290", "429x0", "429x", "429x10001", "429 x2", "x2", "+429"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn words() {
        let second = Duration::from_secs(1);
        let ms = |text: &str| Behaviour::RetryMs(text.to_owned());
        let after = |text: &str| Behaviour::RetryAfter(text.to_owned());
        assert_eq!(read("ok"), Some((Behaviour::Ok, 1, false)));
        assert_eq!(read("slow"), Some((Behaviour::Slow(5 * second), 1, false)));
        assert_eq!(read("slow=1000"), Some((Behaviour::Slow(second), 1, false)));
        assert_eq!(read("hold=3"), Some((Behaviour::Hold(3), 1, false)));
        assert_eq!(read("retry-after=1.0"), Some((after("1.0"), 1, true)));
        assert_eq!(read("retry-ms=250"), Some((ms("250"), 1, true)));
        assert_eq!(read("retry-date=2"), Some((Behaviour::RetryDate(2), 1, true)));
        assert_eq!(read("sse-cut=0"), Some((Behaviour::SseCut(0), 1, false)));
        assert_eq!(read("tool=2"), Some((Behaviour::Tool(2), 1, false)));
        assert_eq!(read("sse-void"), Some((Behaviour::SseVoid, 1, false)));
        assert_eq!(read("sse-first=1000"), Some((Behaviour::SseFirst(second), 1, false)));
    }

    #[test]
    fn what_is_no_behaviour() {
        for wrong in [
            "",
            "OK",
            "okay",
            "ok=1",
            "slow=",
            "slow=-1",
            "slow=600001",
            "hold",
            "sse-cut",
            "sse-cut=",
            "sse-cut=1.5",
            "sse-cut=100001",
            "sse-cut=99999999999999999999",
            "retry-after",
            "retry-after=1.",
            "retry-after=.5",
            "retry-after=-1",
            "retry-after=1e3",
            "retry-after=\u{b2}",
            "retry-date=1.5",
            "reset=1",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
