//! Texts that are put together; letters and their case, for the scripts that messages and addresses are written in.
//!
//! The tables of Unicode are exact for every script there ever was, and weigh more than a third of the module that a
//! browser downloads. Here are the ranges that matter; any other character is its own lower case.

/// The text of these pieces, one after the other. It is what `format!` is without its machinery, which is more code than
/// all the texts that are put together here.
macro_rules! said {
    [$($piece:expr),+ $(,)?] => {{
        let mut out = String::new();
        $($crate::text::Say::say(&$piece, &mut out);)+
        out
    }};
}
pub(crate) use said;

/// What can be a piece of a text.
pub(crate) trait Say {
    fn say(&self, out: &mut String);
}

impl Say for str {
    fn say(&self, out: &mut String) {
        out.push_str(self);
    }
}

impl Say for String {
    fn say(&self, out: &mut String) {
        out.push_str(self);
    }
}

impl Say for u64 {
    fn say(&self, out: &mut String) {
        if *self > 9 {
            (*self / 10).say(out);
        }
        out.push(char::from(b'0' + (*self % 10) as u8));
    }
}

impl Say for u32 {
    fn say(&self, out: &mut String) {
        u64::from(*self).say(out);
    }
}

impl Say for usize {
    fn say(&self, out: &mut String) {
        (*self as u64).say(out);
    }
}

impl<T: Say + ?Sized> Say for &T {
    fn say(&self, out: &mut String) {
        (**self).say(out);
    }
}

/// The texts with something between them.
pub(crate) fn joined<'a>(texts: impl IntoIterator<Item = &'a str>, between: &str) -> String {
    let mut out = String::new();
    for (i, text) in texts.into_iter().enumerate() {
        out.push_str(if i > 0 { between } else { "" });
        out.push_str(text);
    }
    out
}

/// What follows the last `sign`, an ASCII character; the whole where there is none.
pub(crate) fn after_last(text: &str, sign: u8) -> &str {
    &text[text.bytes().rposition(|byte| byte == sign).map_or(0, |at| at + 1)..]
}

/// What std has to look for words with is quicker, and a hundredth of the module that a browser downloads. It is behind
/// `contains` of a character that is no constant, too.
const BY_BYTES: bool = cfg!(target_arch = "wasm32");

/// Every place where the words stand in the text, which are not none.
pub(crate) fn places(text: &str, words: &str) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = &text[from..];
        let at = from + if BY_BYTES { place_by_bytes(rest, words) } else { rest.find(words) }?;
        from = at + words.len();
        Some(at)
    })
}

/// Whether the words, which are not none, stand anywhere in the text.
pub(crate) fn holds(text: &str, words: &str) -> bool {
    if BY_BYTES { place_by_bytes(text, words).is_some() } else { text.contains(words) }
}

fn place_by_bytes(text: &str, words: &str) -> Option<usize> {
    text.as_bytes().windows(words.len()).position(|window| window == words.as_bytes())
}

/// The character in lower case: Latin, Greek, Cyrillic, Armenian, full width.
pub(crate) const fn lower(c: char) -> char {
    let code = c as u32;
    let lower = match code {
        0x41..=0x5A | 0xC0..=0xD6 | 0xD8..=0xDE | 0x391..=0x3A1 | 0x3A3..=0x3AB | 0x410..=0x42F | 0xFF21..=0xFF3A => {
            code + 32
        }
        0x400..=0x40F => code + 80,
        0x531..=0x556 => code + 48,
        0x178 => 0xFF,
        // Pairs, the upper case first: at even places, or at odd ones.
        0x100..=0x12F
        | 0x132..=0x137
        | 0x14A..=0x177
        | 0x460..=0x481
        | 0x48A..=0x4BF
        | 0x4D0..=0x52F
        | 0x1E00..=0x1E95
        | 0x1EA0..=0x1EFF => code | 1,
        0x139..=0x148 | 0x179..=0x17E => code + code % 2,
        _ => code,
    };
    match char::from_u32(lower) {
        Some(lower) => lower,
        None => c,
    }
}

/// The text in lower case.
pub(crate) fn lowered(text: &str) -> String {
    text.chars().map(lower).collect()
}

/// A letter, of any script: whatever is neither ASCII nor a sign.
pub(crate) const fn is_letter(c: char) -> bool {
    match c as u32 {
        0..=0x7F => c.is_ascii_alphabetic(),
        0xAA | 0xB5 | 0xBA | 0xC0..=0xD6 | 0xD8..=0xF6 => true,
        // Controls and signs of Latin-1, combining marks, punctuation, currencies, symbols, ideographic punctuation,
        // private use, surrogates' neighbours, full-width signs, emoji.
        0x80..=0xBF
        | 0xD7
        | 0xF7
        | 0x300..=0x36F
        | 0x2000..=0x214F
        | 0x2190..=0x2BFF
        | 0x3000..=0x3004
        | 0x3008..=0x3020
        | 0xD800..=0xF8FF
        | 0xFE00..=0xFE6F
        | 0xFF00..=0xFF20
        | 0xFF3B..=0xFF40
        | 0xFF5B..=0xFF65
        | 0xFFE0..=0xFFFF
        | 0x1F000..=0x1FAFF
        | 0xE_0000.. => false,
        _ => true,
    }
}

/// A letter or an ASCII digit.
pub(crate) const fn is_word(c: char) -> bool {
    c.is_ascii_digit() || is_letter(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_as_unicode_has_it_in_these_scripts() {
        for c in ('\0'..='\u{24F}').chain('\u{370}'..='\u{58F}').chain('\u{1E00}'..='\u{1EFF}') {
            let mut exact = c.to_lowercase();
            let one = exact.next().filter(|_| exact.next().is_none());
            // What changes here changes as it does there.
            assert!(lower(c) == c || Some(lower(c)) == one, "{c} {:x}", c as u32);
        }
        assert_eq!(lowered("ÜBER ŁÓDŹ ΩΜΕΓΑ ОШИБКА Ёж Ａ İ 请求"), "über łódź ωμεγα ошибка ёж ａ İ 请求");
    }

    #[test]
    fn words_are_found_where_they_stand() {
        let found = |text, words| places(text, words).collect::<Vec<_>>();
        assert_eq!(found("retry in 5s, retry in", "retry in"), [0, 13]);
        assert!(holds("over the limit", "limit") && !holds("over the Limit", "limit"));
        for (text, words) in [("请在30秒后重试", "秒后"), ("limi", "limit"), ("", "limit"), ("lilimit", "limit")]
        {
            assert_eq!(place_by_bytes(text, words), text.find(words));
        }
    }

    #[test]
    fn letters_are_letters() {
        for c in "azAZéßΩж请の한ْا".chars().filter(|c| c.is_alphabetic()) {
            assert!(is_letter(c), "{c}");
        }
        for c in " .,@-_0…—“”，。！（）·×÷€→★\u{301}\u{200b}\u{a0}😀".chars() {
            assert!(!is_letter(c), "{c}");
        }
        assert!(is_word('7') && !is_word('.'));
    }
}
