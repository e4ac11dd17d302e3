//! The writer: straight into text, field after field, in the order that is asked for.

use super::{Json, number};
use crate::span::decimal;
use crate::text::Say;

/// An object as text.
pub(crate) fn object(fill: impl FnOnce(&mut Fields<'_>)) -> String {
    let mut out = String::new();
    braced(&mut out, fill);
    out
}

/// A list as text.
pub(crate) fn list(fill: impl FnOnce(&mut Items<'_>)) -> String {
    let mut out = String::new();
    bracketed(&mut out, fill);
    out
}

fn braced(out: &mut String, fill: impl FnOnce(&mut Fields<'_>)) {
    out.push('{');
    fill(&mut Fields { out, first: true });
    out.push('}');
}

fn bracketed(out: &mut String, fill: impl FnOnce(&mut Items<'_>)) {
    out.push('[');
    fill(&mut Items { out, first: true });
    out.push(']');
}

/// The fields of an object that is being written.
pub(crate) struct Fields<'a> {
    out: &'a mut String,
    first: bool,
}

impl Fields<'_> {
    fn name(&mut self, name: &str) -> &mut String {
        if !std::mem::take(&mut self.first) {
            self.out.push(',');
        }
        quoted(name, self.out);
        self.out.push(':');
        self.out
    }

    /// Text, or `null`.
    pub fn text<'t>(&mut self, name: &str, value: impl Into<Option<&'t str>>) {
        self.maybe_text(name, value.into());
    }

    fn maybe_text(&mut self, name: &str, value: Option<&str>) {
        let out = self.name(name);
        match value {
            Some(text) => quoted(text, out),
            None => out.push_str("null"),
        }
    }

    /// A whole number, or `null`.
    pub fn number(&mut self, name: &str, value: impl Into<Option<u64>>) {
        self.maybe_number(name, value.into());
    }

    fn maybe_number(&mut self, name: &str, value: Option<u64>) {
        let out = self.name(name);
        match value {
            Some(number) => digits(number, out),
            None => out.push_str("null"),
        }
    }

    /// A count that is held in fewer bits, or `null`.
    pub fn count(&mut self, name: &str, value: impl Into<Option<u32>>) {
        self.maybe_number(name, value.into().map(u64::from));
    }

    /// `true` or `false`.
    pub fn flag(&mut self, name: &str, value: bool) {
        self.name(name).push_str(if value { "true" } else { "false" });
    }

    /// A number of `10^-places`, or `null`: `2.0`, `0.25`.
    pub fn decimal(&mut self, name: &str, value: impl Into<Option<u64>>, places: u32) {
        let value = value.into();
        let out = self.name(name);
        let Some(value) = value else { return out.push_str("null") };
        let one = 10u64.pow(places);
        decimal(value, one, out);
        out.push_str(if value % one == 0 { ".0" } else { "" });
    }

    /// An object.
    pub fn object(&mut self, name: &str, fill: impl FnOnce(&mut Fields<'_>)) {
        braced(self.name(name), fill);
    }

    /// A list.
    pub fn list(&mut self, name: &str, fill: impl FnOnce(&mut Items<'_>)) {
        bracketed(self.name(name), fill);
    }

    /// A value that is JSON already.
    pub fn json(&mut self, name: &str, value: &str) {
        self.name(name).push_str(value);
    }
}

/// The items of a list that is being written.
pub(crate) struct Items<'a> {
    out: &'a mut String,
    first: bool,
}

impl Items<'_> {
    fn next(&mut self) -> &mut String {
        if !std::mem::take(&mut self.first) {
            self.out.push(',');
        }
        self.out
    }

    /// Text.
    pub fn text(&mut self, value: &str) {
        quoted(value, self.next());
    }

    /// A whole number.
    pub fn number(&mut self, value: u64) {
        digits(value, self.next());
    }

    /// `true` or `false`.
    pub fn flag(&mut self, value: bool) {
        self.next().push_str(if value { "true" } else { "false" });
    }

    /// An object.
    pub fn object(&mut self, fill: impl FnOnce(&mut Fields<'_>)) {
        braced(self.next(), fill);
    }

    /// A list.
    pub fn list(&mut self, fill: impl FnOnce(&mut Items<'_>)) {
        bracketed(self.next(), fill);
    }
}

/// Appends the JSON of a value, until there is more than an error shows.
pub(super) fn shown(value: &Json, out: &mut String) {
    if out.len() > 1_000 {
        return;
    }
    match value {
        Json::Null => out.push_str("null"),
        Json::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Json::Whole(number) => digits(*number, out),
        Json::Number(number) => out.push_str(&number::shown(*number)),
        Json::Text(text) => quoted(text, out),
        Json::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                shown(item, out);
            }
            out.push(']');
        }
        Json::Map(fields) => {
            out.push('{');
            for (i, (name, value)) in fields.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                quoted(name, out);
                out.push(':');
                shown(value, out);
            }
            out.push('}');
        }
    }
}

fn quoted(text: &str, out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        out.push_str(&rest[..at]);
        out.push('\\');
        match rest.as_bytes()[at] {
            8 => out.push('b'),
            9 => out.push('t'),
            10 => out.push('n'),
            12 => out.push('f'),
            13 => out.push('r'),
            control @ 0..0x20 => {
                out.push_str("u00");
                out.push(char::from(HEX[usize::from(control / 16)]));
                out.push(char::from(HEX[usize::from(control % 16)]));
            }
            itself => out.push(char::from(itself)),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

fn digits(number: u64, out: &mut String) {
    number.say(out);
}

#[cfg(test)]
mod tests {
    use super::super::Json;
    use super::*;

    #[test]
    fn an_object_is_written_field_after_field() {
        let written = object(|o| {
            o.text("a", "\"\\\n\u{1}é\u{1f}");
            o.text("none", None);
            o.number("b", u64::MAX);
            o.flag("c", true);
            o.decimal("d", 1_500_000, 6);
            o.decimal("e", 2_000_000, 6);
            o.decimal("f", 1, 9);
            o.object("g", |_| ());
            o.list("h", |items| {
                items.number(0);
                items.text("x");
            });
        });
        let expected = concat!(
            r#"{"a":"\"\\\n\u0001é\u001f","none":null,"b":18446744073709551615,"c":true,"d":1.5,"e":2.0,"#,
            r#""f":0.000000001,"g":{},"h":[0,"x"]}"#
        );
        assert_eq!(written, expected);
        assert!(Json::parse(&written).is_ok());
    }

    #[test]
    fn an_error_shows_no_more_than_200_characters() {
        let long = Json::List(vec![Json::Text("é".repeat(400)), Json::Number(0.5)]);
        assert_eq!(long.to_string().chars().count(), 201);
        assert_eq!(Json::Map(vec![("a".into(), Json::Number(-3.0))]).to_string(), r#"{"a":-3}"#);
    }
}
