//! One value and the path to it: the small readers that everything is read with.
//!
//! Each reader says what it takes, so that an error can name the field, the value and what is allowed. The first value
//! that is refused is remembered and its reader goes on with a default, so that no reader has to look whether another
//! one succeeded: [`read`] says at the end whether anything was refused.

#![expect(clippy::disallowed_types, reason = "the first refusal is kept in a cell that lives as long as one reading")]

use std::cell::Cell;

use super::Json;
use super::form::Value;
use crate::failure::{Kind, KindSet};
use crate::policy::{ConfigError, Millionths};
use crate::text::{joined, said};
use crate::{Span, SpanError};

/// What was read, or the first value that was refused.
pub(crate) type Read<T> = Result<T, Box<ConfigError>>;

/// Reads a whole: `what` it is, such as `policy`, and what a bare number in it means as a duration (nothing, in JSON).
/// What `reader` has read counts only where nothing was refused. Not generic: its code stands once.
pub(crate) fn read(what: &'static str, value: &Json, unit: Option<Span>, reader: &mut dyn FnMut(&At<'_>)) -> Read<()> {
    let reading = Reading { unit, refused: Cell::new(None) };
    reader(&At { path: Path::Root(what), value, reading: &reading });
    reading.refused.into_inner().map_or(Ok(()), Err)
}

/// What holds for a whole that is being read.
struct Reading {
    unit: Option<Span>,
    refused: Cell<Option<Box<ConfigError>>>,
}

/// A value, and where it stands.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    path: Path<'a>,
    pub value: &'a Json,
    reading: &'a Reading,
}

/// Where a value stands; it becomes text only in an error.
#[derive(Clone, Copy)]
enum Path<'a> {
    Root(&'static str),
    Field(&'a At<'a>, &'a str),
    Item(&'a At<'a>, usize),
}

/// The named values of an object; names are known and given once.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a>(&'a At<'a>);

impl At<'_> {
    /// The value is not what is allowed here; a default stands for it.
    pub fn refuse<T: Default>(&self, allowed: &str) -> T {
        self.refused(allowed);
        T::default()
    }

    fn refused(&self, allowed: &str) {
        let first = self.reading.refused.take();
        let error = || {
            let mut field = self.path();
            if let (Path::Root(what), true) = (self.path, field.is_empty()) {
                field.push_str(what);
            }
            Box::new(ConfigError { field, value: self.value.text(), allowed: allowed.to_owned() })
        };
        self.reading.refused.set(Some(first.unwrap_or_else(error)));
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
        At { path: Path::Field(self, name), value, reading: self.reading }
    }

    pub fn is_null(&self) -> bool {
        self.value.is_null()
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

    pub fn count(&self, low: u64, high: u64) -> u64 {
        let found = self.whole().filter(|n| (low..=high).contains(n));
        found.unwrap_or_else(|| self.refuse(&said!["a whole number from ", low, " to ", high]))
    }

    pub fn count32(&self, low: u32, high: u32) -> u32 {
        u32::try_from(self.count(low.into(), high.into())).unwrap_or(high)
    }

    /// Any whole number.
    pub fn big(&self) -> u64 {
        self.count(0, u64::MAX)
    }

    pub fn span(&self) -> Span {
        let read = match (self.value, self.reading.unit, self.number()) {
            (Json::Text(text), _, _) => Span::parse(text),
            (_, Some(unit), Some(number)) => Span::from_number(number, unit),
            _ => Err(SpanError::Grammar),
        };
        read.unwrap_or_else(|error| self.refuse(&self.duration_words(error)))
    }

    /// Whole nanoseconds, or a duration with its unit, of any length.
    pub fn nanos(&self) -> Span {
        match self.value {
            Json::Text(text) => Span::parse_any(text).unwrap_or_else(|error| self.refuse(error.says())),
            _ => Span::from_nanos(self.big()),
        }
    }

    pub fn positive_span(&self) -> Span {
        let span = self.span();
        if span == Span::ZERO { self.refuse("a duration above zero") } else { span }
    }

    fn duration_words(&self, error: SpanError) -> String {
        let number = match self.reading.unit {
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
    pub fn parts(&self, low: u32, high: u32, of_one: f64) -> u64 {
        let found = self.number().filter(|n| *n >= f64::from(low) && *n <= f64::from(high));
        let parts = found.map(|n| (n * of_one).round_ties_even() as u64);
        parts.unwrap_or_else(|| self.refuse(&said!["a number from ", low, " to ", high]))
    }

    /// A ratio or factor between whole bounds, as millionths.
    pub fn millionths(&self, low: u32, high: u32) -> Millionths {
        Millionths(self.parts(low, high, 1e6))
    }

    pub fn flag(&self) -> bool {
        if let Json::Flag(flag) = self.value { *flag } else { self.refuse("true or false") }
    }

    /// Text of 1 to 200 characters.
    pub fn text(&self) -> String {
        match self.value {
            Json::Text(text) if !text.is_empty() && text.chars().count() <= 200 => text.clone(),
            _ => self.refuse("text of 1 to 200 characters"),
        }
    }

    /// Text of any length.
    pub fn words(&self) -> String {
        self.value.as_str().map_or_else(|| self.refuse("text"), str::to_owned)
    }

    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> T {
        choices[self.index(choices.len(), &|i| choices[i].0)].1
    }

    /// Which of `count` names it is.
    pub fn index<'n>(&self, count: usize, name: &dyn Fn(usize) -> &'n str) -> usize {
        let found = self.value.as_str().and_then(|text| (0..count).find(|i| name(*i) == text));
        found.unwrap_or_else(|| self.refuse(&said!["one of \"", joined((0..count).map(name), "\", \""), "\""]))
    }

    pub fn kind(&self, allowed: fn(Kind) -> bool) -> Kind {
        let kinds: Vec<_> = Kind::all().filter(|k| allowed(*k)).collect();
        kinds[self.index(kinds.len(), &|i| kinds[i].name())]
    }

    pub fn kinds(&self, allowed: fn(Kind) -> bool) -> KindSet {
        self.list(0, Kind::COUNT).map(|at| at.kind(allowed)).collect()
    }

    pub fn list(&self, least: usize, most: usize) -> impl Iterator<Item = At<'_>> {
        let found = self.value.as_list().filter(|items| (least..=most).contains(&items.len()));
        let items = found.unwrap_or_else(|| self.refuse(&said!["a list of ", least, " to ", most, " entries"]));
        items.iter().enumerate().map(|(i, value)| At { path: Path::Item(self, i), value, reading: self.reading })
    }

    /// A list of any length.
    pub fn items<'b, T>(&'b self, read: fn(&At<'b>) -> T) -> Vec<T> {
        self.list(0, usize::MAX).map(|at| read(&at)).collect()
    }

    /// The field of this name, if it is an object that has one.
    pub fn get<'b>(&'b self, name: &'b str) -> Option<At<'b>> {
        Some(self.child(name, self.value.get(name)?))
    }

    /// An object with some of these fields, each given once.
    pub fn object<'b>(&'b self, known: &[&str]) -> Object<'b> {
        let fields = self.value.as_map().unwrap_or_default();
        if let Some((name, value)) = fields.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            let known = joined(known.iter().copied(), ", ");
            self.child(name, value).refused(&said!["no such field; the fields here are ", known]);
        }
        let _each_once = self.entries();
        Object(self)
    }

    /// Every name and value of an object, each name given once.
    pub fn entries(&self) -> impl Iterator<Item = (&str, At<'_>)> {
        let fields = self.value.as_map().unwrap_or_else(|| self.refuse("an object"));
        for (i, (name, value)) in fields.iter().enumerate() {
            if fields[..i].iter().any(|(earlier, _)| earlier == name) {
                self.child(name, value).refused("one value; the field is given twice");
            }
        }
        fields.iter().map(|(name, value)| (name.as_str(), self.child(name, value)))
    }
}

impl<'a> Object<'a> {
    pub fn get(self, name: &'a str) -> Option<At<'a>> {
        self.0.get(name)
    }

    /// Reads the field where it is given.
    pub fn read<T>(self, name: &'a str, read: fn(&At<'a>) -> T) -> Option<T> {
        self.0.get(name).map(|at| read(&at))
    }

    /// Reads the field where it is given and not `null`.
    pub fn maybe<T>(self, name: &'a str, read: fn(&At<'a>) -> T) -> Option<T> {
        self.given(name).map(|at| read(&at))
    }

    /// Reads the field into its slot where it is given.
    pub fn set<T>(self, name: &'a str, slot: &mut T, read: fn(&At<'a>) -> T) {
        if let Some(at) = self.0.get(name) {
            *slot = read(&at);
        }
    }

    /// The field where it is given and not `null`.
    pub fn given(self, name: &'a str) -> Option<At<'a>> {
        self.0.get(name).filter(|at| !at.is_null())
    }

    /// Reads the field into its value where it is given and not `null`.
    pub fn fill(self, name: &'a str, value: &mut dyn Value) {
        if let Some(at) = self.given(name) {
            value.read(&at);
        }
    }

    /// Reads the field into its slot where it is given; `null` unsets it.
    pub fn unset<T>(self, name: &'a str, slot: &mut Option<T>, read: fn(&At<'a>) -> T) {
        if let Some(at) = self.0.get(name) {
            *slot = if at.is_null() { None } else { Some(read(&at)) };
        }
    }

    /// The field that must be given: left out, it is read as `null`, which its reader refuses by the field's name.
    pub fn need<T>(self, name: &'a str, read: fn(&At<'a>) -> T) -> T {
        read(&self.0.get(name).unwrap_or_else(|| self.0.child(name, &Json::Null)))
    }

    /// Refuses a field that was left to its default or to what it inherits.
    pub fn refuse<T: Default>(self, name: &str, inherited: &Json, allowed: &str) -> T {
        self.0.child(name, self.0.value.get(name).unwrap_or(inherited)).refuse(allowed)
    }
}
