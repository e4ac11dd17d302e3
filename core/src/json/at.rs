//! One value and the path to it: the small readers that everything is read with.
//!
//! Each reader says what it takes, so that an error can name the field, the value and what is allowed.

#![expect(clippy::unnecessary_box_returns, reason = "an error is boxed where it is made: see `Read`")]

use super::Json;
use crate::failure::{Kind, KindSet};
use crate::policy::{ConfigError, Millionths};
use crate::text::{joined, said};
use crate::{Span, SpanError};

/// The error is boxed: the way of what is read without one stays short.
pub(crate) type Read<T> = Result<T, Box<ConfigError>>;

/// A value, where it stands, and what a bare number means as a duration (nothing, in JSON).
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    path: Path<'a>,
    pub value: &'a Json,
    unit: Option<Span>,
}

/// Where a value stands; it becomes text only in an error.
#[derive(Clone, Copy, Debug)]
enum Path<'a> {
    /// What is being read, such as `policy`.
    Root(&'static str),
    Field(&'a At<'a>, &'a str),
    Item(&'a At<'a>, usize),
}

/// The named values of an object; names are known and given once.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a>(&'a At<'a>);

impl<'a> At<'a> {
    pub fn root(what: &'static str, value: &'a Json, unit: Option<Span>) -> At<'a> {
        At { path: Path::Root(what), value, unit }
    }

    pub fn refuse(&self, allowed: &str) -> Box<ConfigError> {
        self.refuse_owned(allowed.to_owned())
    }

    pub fn refuse_owned(&self, allowed: String) -> Box<ConfigError> {
        let mut field = self.path();
        if let (Path::Root(what), true) = (self.path, field.is_empty()) {
            field.push_str(what);
        }
        Box::new(ConfigError { field, value: self.value.text(), allowed })
    }

    fn path(&self) -> String {
        match self.path {
            Path::Root(_) => String::new(),
            Path::Field(parent, name) => {
                let mut path = parent.path();
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                path
            }
            Path::Item(parent, index) => said![parent.path(), "[", index, "]"],
        }
    }

    fn child<'b>(&'b self, name: &'b str, value: &'b Json) -> At<'b> {
        At { path: Path::Field(self, name), value, unit: self.unit }
    }

    pub fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// `null` unsets a field that can be unset.
    pub fn unless_null<T>(&self, read: impl FnOnce(&Self) -> Read<T>) -> Read<Option<T>> {
        if self.is_null() { Ok(None) } else { read(self).map(Some) }
    }

    #[expect(clippy::cast_precision_loss, reason = "a number from a binding is a float; none is past 2^53")]
    fn number(&self) -> Option<f64> {
        match self.value {
            Json::Whole(n) => Some(*n as f64),
            Json::Number(n) => Some(*n),
            _ => None,
        }
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and within 0 and 2^53")]
    fn whole(&self) -> Option<u64> {
        match self.value {
            Json::Whole(n) => Some(*n),
            Json::Number(n) if n.fract() == 0.0 && (0.0..=9e15).contains(n) => Some(*n as u64),
            _ => None,
        }
    }

    pub fn count(&self, low: u64, high: u64) -> Read<u64> {
        let found = self.whole().filter(|n| (low..=high).contains(n));
        found.ok_or_else(|| self.refuse_owned(said!["a whole number from ", low, " to ", high]))
    }

    pub fn count32(&self, low: u32, high: u32) -> Read<u32> {
        self.count(low.into(), high.into()).map(|n| u32::try_from(n).unwrap_or(high))
    }

    /// Any whole number.
    pub fn big(&self) -> Read<u64> {
        self.count(0, u64::MAX)
    }

    pub fn span(&self) -> Read<Span> {
        let read = match (self.value, self.unit, self.number()) {
            (Json::Text(text), _, _) => Span::parse(text),
            (_, Some(unit), Some(number)) => Span::from_number(number, unit),
            _ => Err(SpanError::Grammar),
        };
        read.map_err(|error| self.refuse_owned(self.duration_words(error)))
    }

    /// Whole nanoseconds, or a duration with its unit, of any length.
    pub fn nanos(&self) -> Read<Span> {
        match self.value {
            Json::Text(text) => Span::parse_any(text).map_err(|error| self.refuse(error.says())),
            _ => self.big().map(Span::from_nanos),
        }
    }

    pub fn positive_span(&self) -> Read<Span> {
        let span = self.span()?;
        if span == Span::ZERO { Err(self.refuse("a duration above zero")) } else { Ok(span) }
    }

    fn duration_words(&self, error: SpanError) -> String {
        let number = match self.unit {
            Some(unit) if unit == Span::from_secs(1) => "a number of seconds, or ",
            Some(_) => "a number of milliseconds, or ",
            None => "",
        };
        match error {
            SpanError::Grammar => {
                said![number, "a duration with its unit (ns, us, ms, s, m, h, d), such as \"300ms\" or \"1.5s\""]
            }
            SpanError::NotFinite | SpanError::Negative => said![number, "a duration that is finite and not negative"],
            SpanError::TooLong => "a duration of at most 90 days".into(),
            SpanError::TooFine => "a duration in whole nanoseconds".into(),
        }
    }

    /// A number between bounds, in parts of 1: ties to even.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the bounds are small and positive")]
    pub fn parts(&self, low: u32, high: u32, of_one: f64) -> Read<u64> {
        let found = self.number().filter(|n| *n >= f64::from(low) && *n <= f64::from(high));
        let parts = found.map(|n| (n * of_one).round_ties_even() as u64);
        parts.ok_or_else(|| self.refuse_owned(said!["a number from ", low, " to ", high]))
    }

    /// A ratio or factor between whole bounds, as millionths.
    pub fn millionths(&self, low: u32, high: u32) -> Read<Millionths> {
        self.parts(low, high, 1e6).map(Millionths)
    }

    pub fn flag(&self) -> Read<bool> {
        if let Json::Flag(flag) = self.value { Ok(*flag) } else { Err(self.refuse("true or false")) }
    }

    /// Text of 1 to 200 characters.
    pub fn text(&self) -> Read<String> {
        match self.value {
            Json::Text(text) if !text.is_empty() && text.chars().count() <= 200 => Ok(text.clone()),
            _ => Err(self.refuse("text of 1 to 200 characters")),
        }
    }

    /// Text of any length.
    pub fn words(&self) -> Read<String> {
        self.value.as_str().map(str::to_owned).ok_or_else(|| self.refuse("text"))
    }

    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Read<T> {
        self.index(choices.len(), |i| choices[i].0).map(|i| choices[i].1)
    }

    /// Which of `count` names it is.
    pub fn index<'n>(&self, count: usize, name: impl Fn(usize) -> &'n str) -> Read<usize> {
        let found = self.value.as_str().and_then(|text| (0..count).find(|i| name(*i) == text));
        found.ok_or_else(|| {
            self.refuse_owned(said!["one of \"", joined((0..count).map(name), "\", \""), "\""])
        })
    }

    pub fn kind(&self, allowed: impl Fn(Kind) -> bool) -> Read<Kind> {
        let kinds: Vec<_> = Kind::all().filter(|k| allowed(*k)).collect();
        self.index(kinds.len(), |i| kinds[i].name()).map(|i| kinds[i])
    }

    pub fn kinds(&self, allowed: impl Fn(Kind) -> bool) -> Read<KindSet> {
        self.list(0, Kind::COUNT)?.map(|at| at.kind(&allowed)).collect()
    }

    pub fn list(&self, least: usize, most: usize) -> Read<impl Iterator<Item = At<'_>>> {
        match self.value.as_list().filter(|items| (least..=most).contains(&items.len())) {
            Some(items) => {
                let at = |(i, value)| At { path: Path::Item(self, i), value, unit: self.unit };
                Ok(items.iter().enumerate().map(at))
            }
            None => Err(self.refuse_owned(said!["a list of ", least, " to ", most, " entries"])),
        }
    }

    /// A list of any length.
    pub fn items<'b, T>(&'b self, read: impl Fn(&At<'b>) -> Read<T>) -> Read<Vec<T>> {
        self.list(0, usize::MAX)?.map(|at| read(&at)).collect()
    }

    /// The field of this name, if it is an object that has one.
    pub fn get<'b>(&'b self, name: &'b str) -> Option<At<'b>> {
        Some(self.child(name, self.value.get(name)?))
    }

    /// An object with some of these fields, each given once.
    pub fn object<'b>(&'b self, known: &[&str]) -> Read<Object<'b>> {
        let fields = self.value.as_map().unwrap_or_default();
        if let Some((name, value)) = fields.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            let allowed = said!["no such field; the fields here are ", joined(known.iter().copied(), ", ")];
            return Err(self.child(name, value).refuse_owned(allowed));
        }
        self.entries().map(|_| Object(self))
    }

    /// Every name and value of an object, each name given once.
    pub fn entries(&self) -> Read<impl Iterator<Item = (&str, At<'_>)>> {
        let fields = self.value.as_map().ok_or_else(|| self.refuse("an object"))?;
        for (i, (name, value)) in fields.iter().enumerate() {
            if fields[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(self.child(name, value).refuse("one value; the field is given twice"));
            }
        }
        Ok(fields.iter().map(|(name, value)| (name.as_str(), self.child(name, value))))
    }
}

impl<'a> Object<'a> {
    pub fn get(self, name: &'a str) -> Option<At<'a>> {
        self.0.get(name)
    }

    /// Reads the field where it is given.
    pub fn read<T>(self, name: &'a str, read: impl FnOnce(&At<'a>) -> Read<T>) -> Read<Option<T>> {
        self.get(name).map(|at| read(&at)).transpose()
    }

    /// Reads the field where it is given and not `null`.
    pub fn maybe<T>(self, name: &'a str, read: impl FnOnce(&At<'a>) -> Read<T>) -> Read<Option<T>> {
        self.get(name).filter(|at| !at.is_null()).map(|at| read(&at)).transpose()
    }

    /// Reads the field into its slot where it is given.
    pub fn set<T>(self, name: &'a str, slot: &mut T, read: impl FnOnce(&At<'a>) -> Read<T>) -> Read<()> {
        if let Some(value) = self.read(name, read)? {
            *slot = value;
        }
        Ok(())
    }

    /// The field that must be given: left out, it is read as `null`, which its reader refuses by the field's name.
    pub fn need<T>(self, name: &'a str, read: impl FnOnce(&At<'a>) -> Read<T>) -> Read<T> {
        read(&self.get(name).unwrap_or_else(|| self.0.child(name, &Json::Null)))
    }

    /// An error about a field that was left to its default or to what it inherits.
    pub fn refuse(self, name: &str, inherited: &Json, allowed: &str) -> Box<ConfigError> {
        match self.0.value.get(name) {
            Some(value) => self.0.child(name, value).refuse(allowed),
            None => self.0.child(name, inherited).refuse(allowed),
        }
    }
}
