//! The reader: text into the tree.

use super::{Json, JsonError, number};
use crate::text::said;

/// Deeper than this nothing is read: the reader calls itself at each level.
const DEEPEST: usize = 128;

type Read<T> = Result<T, &'static str>;

/// The whole text as one value.
pub(super) fn parse(text: &str) -> Result<Json, JsonError> {
    let mut reader = Reader { text, at: 0 };
    let read = reader.value(DEEPEST).and_then(|value| {
        reader.blank();
        if reader.at == text.len() { Ok(value) } else { Err("the end") }
    });
    read.map_err(|expected| {
        let (mut line, mut column) = (1_u32, 1_u32);
        for byte in text.bytes().take(reader.at) {
            (line, column) = if byte == b'\n' { (line + 1, 1) } else { (line, column + 1) };
        }
        JsonError(said!["expected ", expected, " at line ", line, " column ", column])
    })
}

struct Reader<'a> {
    text: &'a str,
    /// How much is read; always between two characters.
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        // No JSON holds this byte, so that it may stand for the end.
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == byte;
        self.at += usize::from(there);
        there
    }

    fn blank(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Read<Json> {
        if depth == 0 {
            return Err("no more than 128 levels");
        }
        self.blank();
        match self.peek() {
            b'"' => self.quoted().map(Json::Text),
            b'[' => self.list(depth - 1),
            b'{' => self.map(depth - 1),
            b'-' | b'0'..=b'9' => self.number(),
            _ => {
                let words = [("null", Json::Null), ("true", Json::Flag(true)), ("false", Json::Flag(false))];
                let rest = &self.text[self.at..];
                let (word, value) = words.into_iter().find(|(word, _)| rest.starts_with(word)).ok_or("a value")?;
                self.at += word.len();
                Ok(value)
            }
        }
    }

    fn list(&mut self, depth: usize) -> Read<Json> {
        let mut items = Vec::new();
        self.at += 1;
        self.blank();
        if self.take(b']') {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth)?);
            self.blank();
            if self.take(b']') {
                return Ok(Json::List(items));
            }
            if !self.take(b',') {
                return Err("`,` or `]`");
            }
        }
    }

    fn map(&mut self, depth: usize) -> Read<Json> {
        let mut fields = Vec::new();
        self.at += 1;
        self.blank();
        if self.take(b'}') {
            return Ok(Json::Map(fields));
        }
        loop {
            self.blank();
            let name = self.quoted()?;
            self.blank();
            if !self.take(b':') {
                return Err("`:`");
            }
            fields.push((name, self.value(depth)?));
            self.blank();
            if self.take(b'}') {
                return Ok(Json::Map(fields));
            }
            if !self.take(b',') {
                return Err("`,` or `}`");
            }
        }
    }

    fn quoted(&mut self) -> Read<String> {
        if !self.take(b'"') {
            return Err("a name in quotes");
        }
        let mut out = String::new();
        loop {
            let start = self.at;
            while !matches!(self.peek(), b'"' | b'\\' | 0..0x20) {
                self.at += 1;
            }
            out.push_str(&self.text[start..self.at]);
            if self.take(b'"') {
                return Ok(out);
            }
            if !self.take(b'\\') {
                return Err("the end of the text, and control characters as escapes");
            }
            out.push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Read<char> {
        let found = match self.peek() {
            byte @ (b'"' | b'\\' | b'/') => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err("an escape"),
        };
        self.at += 1;
        Ok(found)
    }

    /// What follows `\u`. Half of a pair alone is no character: it becomes U+FFFD.
    fn unicode(&mut self) -> Read<char> {
        let first = self.hex()?;
        let mut code = first;
        if (0xD800..0xDC00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            match self.hex()? {
                second @ 0xDC00..0xE000 => code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00),
                // It stands for itself.
                _ => self.at = before,
            }
        }
        Ok(char::from_u32(code).unwrap_or('\u{FFFD}'))
    }

    fn hex(&mut self) -> Read<u32> {
        let mut code = 0;
        for _ in 0..4 {
            code = code * 16 + char::from(self.peek()).to_digit(16).ok_or("four hex digits")?;
            self.at += 1;
        }
        Ok(code)
    }

    fn number(&mut self) -> Read<Json> {
        let negative = self.take(b'-');
        let mut found = number::Parts::default();
        let leading_zero = self.peek() == b'0';
        let whole = self.digits(|digit| found.whole(digit))?;
        if leading_zero && whole > 1 {
            return Err("no digit after a leading zero");
        }
        let mut is_whole = !negative;
        if self.take(b'.') {
            is_whole = false;
            self.digits(|digit| found.fraction(digit))?;
        }
        if self.take(b'e') || self.take(b'E') {
            is_whole = false;
            let down = self.take(b'-');
            if !down {
                self.take(b'+');
            }
            let mut exponent: i32 = 0;
            self.digits(|digit| exponent = exponent.saturating_mul(10).saturating_add(i32::from(digit)))?;
            found.shift(if down { -exponent } else { exponent });
        }
        found.value(negative, is_whole).ok_or("a number below 1e308")
    }

    /// One digit or more; how many.
    fn digits(&mut self, mut each: impl FnMut(u8)) -> Read<usize> {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            each(self.peek() - b'0');
            self.at += 1;
        }
        if self.at == start { Err("a digit") } else { Ok(self.at - start) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_shapes() {
        let cases = [
            ("0", Json::Whole(0)),
            ("18446744073709551615", Json::Whole(u64::MAX)),
            ("18446744073709551616", Json::Number(18_446_744_073_709_551_616.0)),
            ("-3", Json::Number(-3.0)),
            ("1.0", Json::Number(1.0)),
            ("25E-2", Json::Number(0.25)),
            ("1e22", Json::Number(1e22)),
            ("1e-400", Json::Number(0.0)),
            ("0.1", Json::Number(0.1)),
            ("123456789012345678901234567890", Json::Number(1.234_567_890_123_456_8e29)),
        ];
        for (text, expected) in cases {
            assert_eq!(Json::parse(text).unwrap(), expected, "{text}");
        }
        let read = Json::parse(" { \"a\" : [ ] , \"b\":{}, \"c\": [true, false, null] } ").unwrap();
        assert_eq!(read.find("c/0"), Some(&Json::Flag(true)));
        assert_eq!(read.find("c/3"), None);
        assert_eq!(read.get("a").and_then(Json::as_list), Some(&[][..]));
        assert!(Json::parse(&"[".repeat(1_000_000)).is_err(), "depth is bounded");
        assert!(Json::parse(&("[".repeat(127) + &"]".repeat(127))).is_ok());
    }

    #[test]
    fn escapes() {
        let read = |text: &str| Json::parse(text).map(|json| json.as_str().unwrap_or("?").to_owned());
        assert_eq!(read(r#""a\"\\\/\b\f\n\r\t\u00e9é""#).unwrap(), "a\"\\/\u{8}\u{c}\n\r\téé");
        assert_eq!(read(r#""\ud83d\ude00 \uD83D \ude00 \ud83d\u0041""#).unwrap(), "😀 \u{FFFD} \u{FFFD} \u{FFFD}A");
    }

    #[test]
    fn what_is_not_json_says_where() {
        let cases = [
            ("", "expected a value at line 1 column 1"),
            ("[1,]", "expected a value at line 1 column 4"),
            ("[1", "expected `,` or `]` at line 1 column 3"),
            ("{\n \"a\" 1}", "expected `:` at line 2 column 6"),
            ("{1}", "expected a name in quotes at line 1 column 2"),
            ("{\"a\":1;}", "expected `,` or `}` at line 1 column 7"),
            ("1 2", "expected the end at line 1 column 3"),
            ("01", "expected no digit after a leading zero at line 1 column 3"),
            ("-", "expected a digit at line 1 column 2"),
            ("1.", "expected a digit at line 1 column 3"),
            ("1e", "expected a digit at line 1 column 3"),
            ("1e999", "expected a number below 1e308 at line 1 column 6"),
            ("nul", "expected a value at line 1 column 1"),
            ("\"a", "expected the end of the text, and control characters as escapes at line 1 column 3"),
            ("\"\\x\"", "expected an escape at line 1 column 3"),
            ("\"\\u12g4\"", "expected four hex digits at line 1 column 6"),
        ];
        for (text, expected) in cases {
            assert_eq!(Json::parse(text).unwrap_err().to_string(), expected, "{text}");
        }
    }
}
