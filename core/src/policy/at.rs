//! One value of a policy and the path to it: the small readers that every field is read with.
//!
//! Each reader says what it takes, so that an error can name the field, the value and what is allowed.

use super::error::ConfigError;
use super::fields::Millionths;
use super::input::Input;
use crate::failure::{Kind, KindSet};
use crate::{Span, SpanError};

pub(super) type Read<T> = Result<T, ConfigError>;

/// A value, where it stands, and what a bare number means as a duration (nothing, in JSON).
#[derive(Clone, Debug)]
pub(super) struct At<'a> {
    path: String,
    value: &'a Input,
    unit: Option<Span>,
}

/// The named values of an object; names are known and given once.
pub(super) struct Object<'a> {
    at: At<'a>,
    fields: &'a [(String, Input)],
}

impl<'a> At<'a> {
    pub(super) fn root(value: &'a Input, unit: Option<Span>) -> At<'a> {
        At { path: String::new(), value, unit }
    }

    pub(super) fn refuse(&self, allowed: impl Into<String>) -> ConfigError {
        let field = if self.path.is_empty() { "policy" } else { &self.path };
        ConfigError { field: field.to_owned(), value: self.value.to_string(), allowed: allowed.into() }
    }

    fn child(&self, name: &str, value: &'a Input) -> At<'a> {
        let dot = if self.path.is_empty() { "" } else { "." };
        At { path: format!("{}{dot}{name}", self.path), value, unit: self.unit }
    }

    pub(super) fn is_null(&self) -> bool {
        *self.value == Input::Null
    }

    /// `null` unsets a field that can be unset.
    pub(super) fn unless_null<T>(&self, read: impl FnOnce(&Self) -> Read<T>) -> Read<Option<T>> {
        if self.is_null() { Ok(None) } else { read(self).map(Some) }
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounds are below 2^53, and the value is whole and within them"
    )]
    pub(super) fn count(&self, low: u64, high: u64) -> Read<u64> {
        match self.value {
            Input::Number(n) if n.fract() == 0.0 && *n >= low as f64 && *n <= high as f64 => Ok(*n as u64),
            _ => Err(self.refuse(format!("a whole number from {low} to {high}"))),
        }
    }

    pub(super) fn count32(&self, low: u32, high: u32) -> Read<u32> {
        self.count(low.into(), high.into()).map(|n| u32::try_from(n).unwrap_or(high))
    }

    pub(super) fn span(&self) -> Read<Span> {
        let read = match (self.value, self.unit) {
            (Input::Text(text), _) => Span::parse(text),
            (Input::Number(number), Some(unit)) => Span::from_number(*number, unit),
            _ => Err(SpanError::Grammar),
        };
        read.map_err(|error| self.refuse(self.duration_words(error)))
    }

    pub(super) fn positive_span(&self) -> Read<Span> {
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
                format!("{number}a duration with its unit (ns, us, ms, s, m, h, d), such as \"300ms\" or \"1.5s\"")
            }
            SpanError::NotFinite | SpanError::Negative => format!("{number}a duration that is finite and not negative"),
            SpanError::TooLong => "a duration of at most 90 days".into(),
            SpanError::TooFine => "a duration in whole nanoseconds".into(),
        }
    }

    /// A ratio or factor between whole bounds, as millionths, ties to even.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the bounds are small and positive")]
    pub(super) fn millionths(&self, low: u32, high: u32) -> Read<Millionths> {
        match self.value {
            Input::Number(n) if *n >= f64::from(low) && *n <= f64::from(high) => {
                Ok(Millionths((n * 1e6).round_ties_even() as u64))
            }
            _ => Err(self.refuse(format!("a number from {low} to {high}"))),
        }
    }

    pub(super) fn flag(&self) -> Read<bool> {
        match self.value {
            Input::Flag(flag) => Ok(*flag),
            _ => Err(self.refuse("true or false")),
        }
    }

    /// Text of 1 to 200 characters.
    pub(super) fn text(&self) -> Read<String> {
        match self.value {
            Input::Text(text) if !text.is_empty() && text.chars().count() <= 200 => Ok(text.clone()),
            _ => Err(self.refuse("text of 1 to 200 characters")),
        }
    }

    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Read<T> {
        let Input::Text(text) = self.value else { return Err(self.refuse_choice(choices)) };
        choices.iter().find(|(name, _)| name == text).map(|c| c.1).ok_or_else(|| self.refuse_choice(choices))
    }

    fn refuse_choice<T>(&self, choices: &[(&str, T)]) -> ConfigError {
        let names: Vec<_> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
        self.refuse(format!("one of {}", names.join(", ")))
    }

    pub(super) fn kind(&self, allowed: impl Fn(Kind) -> bool) -> Read<Kind> {
        let kinds: Vec<_> = Kind::all().filter(|k| allowed(*k)).map(|k| (k.name(), k)).collect();
        self.choice(&kinds)
    }

    pub(super) fn kinds(&self, allowed: impl Fn(Kind) -> bool) -> Read<KindSet> {
        self.list(0, Kind::COUNT)?.iter().map(|at| at.kind(&allowed)).collect()
    }

    pub(super) fn list(&self, least: usize, most: usize) -> Read<Vec<At<'a>>> {
        match self.value {
            Input::List(items) if (least..=most).contains(&items.len()) => Ok(items
                .iter()
                .enumerate()
                .map(|(i, value)| At { path: format!("{}[{i}]", self.path), value, unit: self.unit })
                .collect()),
            _ => Err(self.refuse(format!("a list of {least} to {most} entries"))),
        }
    }

    /// An object with some of these fields, each given once.
    pub(super) fn object(&self, known: &[&str]) -> Read<Object<'a>> {
        let fields = self.entries()?;
        for (name, at) in &fields {
            if !known.contains(&name.as_str()) {
                return Err(at.refuse(format!("no such field; the fields here are {}", known.join(", "))));
            }
        }
        let Input::Map(fields) = self.value else { return Err(self.refuse("an object")) };
        Ok(Object { at: self.clone(), fields })
    }

    /// Every name and value of an object, each name given once.
    pub(super) fn entries(&self) -> Read<Vec<(&'a String, At<'a>)>> {
        let Input::Map(fields) = self.value else { return Err(self.refuse("an object")) };
        for (i, (name, value)) in fields.iter().enumerate() {
            if fields[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(self.child(name, value).refuse("one value; the field is given twice"));
            }
        }
        Ok(fields.iter().map(|(name, value)| (name, self.child(name, value))).collect())
    }
}

impl<'a> Object<'a> {
    pub(super) fn get(&self, name: &str) -> Option<At<'a>> {
        let (name, value) = self.fields.iter().find(|(n, _)| n == name)?;
        Some(self.at.child(name, value))
    }

    /// Reads the field where it is given.
    pub(super) fn read<T>(&self, name: &str, read: impl FnOnce(&At<'a>) -> Read<T>) -> Read<Option<T>> {
        self.get(name).map(|at| read(&at)).transpose()
    }

    /// Reads the field into its slot where it is given.
    pub(super) fn set<T>(&self, name: &str, slot: &mut T, read: impl FnOnce(&At<'a>) -> Read<T>) -> Read<()> {
        if let Some(value) = self.read(name, read)? {
            *slot = value;
        }
        Ok(())
    }

    /// The field that must be given: left out, it is read as `null`, which its reader refuses by the field's name.
    pub(super) fn need<T>(&self, name: &str, read: impl FnOnce(&At<'a>) -> Read<T>) -> Read<T> {
        read(&self.get(name).unwrap_or_else(|| self.at.child(name, &Input::Null)))
    }

    /// An error about a field that was left to its default or to what it inherits.
    pub(super) fn refuse(&self, name: &str, inherited: &Input, allowed: impl Into<String>) -> ConfigError {
        match self.get(name) {
            Some(at) => at.refuse(allowed),
            None => self.at.child(name, &Input::Null).with_value(inherited).refuse(allowed),
        }
    }
}

impl At<'_> {
    fn with_value<'b>(&self, value: &'b Input) -> At<'b> {
        At { path: self.path.clone(), value, unit: self.unit }
    }
}
