//! Runs the `mask` vectors, and holds what no list of cases can: properties over generated text, and linear time.

use reprieve::trace::mask::{Masks, mask};
use serde::Deserialize;
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Deserialize)]
struct Index {
    files: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    file: String,
    topic: String,
    cases: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    topic: String,
    #[serde(rename = "about")]
    _about: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    description: String,
    text: String,
    #[serde(default)]
    off: Vec<String>,
    expect: String,
}

fn read<T: for<'d> Deserialize<'d>>(name: &str) -> T {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn every_case_holds() {
    let mut wrong = Vec::new();
    let listed = read::<Index>("index.json").files.into_iter().filter(|f| f.topic == "mask").collect::<Vec<_>>();
    assert!(!listed.is_empty(), "index.json lists no file of topic mask");
    for listed in listed {
        let vectors: Vectors = read(&listed.file);
        assert_eq!(vectors.topic, "mask", "{}", listed.file);
        assert_eq!(vectors.cases.len(), listed.cases, "index.json gives another count for {}", listed.file);
        for case in vectors.cases {
            let masks = Masks::without(&case.off).unwrap_or_else(|e| panic!("{}: {e}", case.id));
            let got = mask(&case.text, masks);
            let copied = matches!(got, Cow::Owned(_));
            if got != case.expect || copied != (case.expect != case.text) || mask(&got, masks) != got {
                wrong.push(format!(
                    "{}: {}\n  text   {}\n  expect {}\n  got    {got}",
                    case.id, case.description, case.text, case.expect
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn an_unknown_name_is_refused_with_what_is_allowed() {
    let error = Masks::without(["ids", "Phones"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no mask is called \"Phones\"; the masks are ids, cards, phones, serials, keys, tokens, emails"
    );
    assert_eq!(Masks::without(Vec::<String>::new()), Ok(Masks::default()));
}

/// A small generator with a fixed sequence: `SplitMix64`.
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((x ^ (x >> 31)) % n as u64).unwrap()
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    fn masks(&mut self) -> Masks {
        let off: Vec<_> = Masks::NAMES.into_iter().filter(|_| self.below(5) == 0).collect();
        Masks::without(off).unwrap()
    }

    /// Any Unicode at all, but more of the characters that mean something here.
    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.below(14) {
            match self.below(6) {
                0 => (0..self.below(24)).for_each(|_| text.push_str(self.of(&DIGITS))),
                1 => text.extend(char::from_u32(u32::try_from(self.below(0x11_0000)).unwrap())),
                2 => text.push_str(
                    self.of(&["\\", "\"", "'", "\n", " ", "*", "***", "%", "=", ":", "@", ".", "/", "-", "b'"]),
                ),
                _ => text.push_str(self.of(&FRAGMENTS)),
            }
        }
        text
    }
}

const DIGITS: [&str; 10] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
const FRAGMENTS: [&str; 40] = [
    "sk-",
    "sk-ant-",
    "sk-proj-",
    "AIza",
    "AKIA",
    "hf_",
    "key-",
    "github_pat_",
    "bce-v3/",
    "eyJ",
    "ya29.",
    "Bearer ",
    "basic ",
    "Authorization: ",
    "api_key=",
    "x-api-key: ",
    "\"apiKey\": \"",
    "password='",
    "?key=",
    "&sig=",
    "token=",
    "signature=",
    "://",
    "://u:p@",
    "@",
    "%40",
    ".com",
    "zhang",
    "é",
    "张",
    "Ｘ",
    "X",
    "SN",
    "x",
    "abcdefgh",
    "ABCDEFGHIJKLMNOP0",
    "\\n",
    "%3D",
    "１",
    "\u{0}",
];

#[test]
fn masking_twice_is_masking_once_and_shortens_or_adds_little() {
    let mut draws = Draws(1);
    for _ in 0..60_000 {
        let (text, masks) = (draws.text(), draws.masks());
        let once = mask(&text, masks);
        let twice = mask(&once, masks);
        assert_eq!(twice, once, "masked again: {text:?} with {masks:?}");
        assert!(matches!(twice, Cow::Borrowed(_)), "copied without a change: {once:?}");
        // Three stars are added to a local part of one letter, and stand for a value of one; its name stays beside it.
        assert!(once.len() <= 3 * text.len(), "{text:?} grew into {once:?}");
    }
}

#[test]
fn of_a_masked_run_of_digits_only_what_is_kept_shows() {
    let mut draws = Draws(2);
    for _ in 0..20_000 {
        let length = draws.below(34);
        let digits: String = (0..length).map(|_| draws.of(&DIGITS)).collect();
        let (before, after) = (draws.of(&["", "a", "张", " ", "SN", "_"]), draws.of(&["", "b", "号", ".", "Y"]));
        let text = format!("{before}{digits}{after}");
        let masked = mask(&text, Masks::ALL);
        let phone = digits.as_bytes().first() == Some(&b'1') && digits.as_bytes().get(1).is_some_and(|d| *d >= b'3');
        let (head, stars) = match length {
            18 => (6, 8),
            16..=20 => (4, 8),
            11 if phone => (3, 4),
            _ => (length, 0),
        };
        let tail = if stars == 0 { "" } else { &digits[length - 4..] };
        assert_eq!(masked, format!("{before}{}{}{tail}{after}", &digits[..head], "*".repeat(stars)), "{text:?}");
    }
}

#[test]
fn hostile_text_takes_time_in_proportion_to_its_length() {
    let small = 1 << 17;
    let mut hostile: Vec<String> = FRAGMENTS.iter().map(|unit| unit.repeat(small / unit.len())).collect();
    for unit in ["1", "sk-", "@"] {
        hostile.push(unit.repeat((1 << 20) / unit.len()));
    }
    for unit in [".", "\\", "\"", "*", " ", "a", "a.", "a@", "%40a.", "eyJ.", "-sk-", "sk-a ", "***@", "://*@"] {
        hostile.push(unit.repeat(small / unit.len()));
    }
    for start in ["api_key=", "api_key='", "Bearer ", "a@", "://", "eyJ", "authorization:"] {
        for unit in [".", "\\", " ", "\"", "a.", "***"] {
            hostile.push(format!("{start}{}", unit.repeat(small / unit.len())));
        }
    }
    for text in hostile {
        let quickly = || {
            let begun = Instant::now();
            let _ = mask(&text, Masks::ALL);
            begun.elapsed() < Duration::from_secs(2)
        };
        let begins: String = text.chars().take(24).collect();
        // In proportion it takes some 25 ms where nothing is optimised; a scan from every place takes many seconds, each
        // time, and a machine that stands still does so now and then.
        assert!((0..10).any(|_| quickly()), "{} bytes that begin {begins:?} take 2 s and more", text.len());
    }
}
