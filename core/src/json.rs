//! JSON: one tree for everything that is read, one writer for everything that is written.
//!
//! One tree and one writer, because code that is derived for each type is half of the module that a browser downloads,
//! and both of our own, because a general one is a tenth of it. The tree keeps what a policy must see: a key given twice.

pub(crate) mod at;
pub(crate) mod form;
mod natural;
mod number;
mod read;
mod write;

pub(crate) use number::shown;
pub(crate) use write::{Fields, Items, list, object};

use std::fmt;

/// A value as it was written: JSON, or a binding's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Json {
    /// Nothing: for a field that can be unset, unset.
    #[default]
    Null,
    /// A truth value.
    Flag(bool),
    /// A whole number without a sign, fraction or exponent.
    Whole(u64),
    /// Any other number.
    Number(f64),
    /// Text, durations among it.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// Names and values, in the order written.
    Map(Vec<(String, Json)>),
}

/// Text that is not JSON: what was expected, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(pub(crate) String);

impl Json {
    /// Reads JSON.
    ///
    /// ```
    /// use reprieve::json::Json;
    /// let read = Json::parse(r#"{"a": [1], "a": 18446744073709551615}"#)?;
    /// assert_eq!(read.get("a"), Some(&Json::Whole(u64::MAX)), "the last one given");
    /// assert_eq!(Json::parse("[1,]").unwrap_err().to_string(), "expected a value at line 1 column 4");
    /// # Ok::<(), reprieve::json::JsonError>(())
    /// ```
    ///
    /// # Errors
    /// What was expected in place of what is there, and where.
    pub fn parse(text: &str) -> Result<Json, JsonError> {
        read::parse(text)
    }

    /// The value of this name in an object, the last one where it is given twice.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.as_map()?.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// The value at a path of names and indices, such as `choices/0/text`.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<&Json> {
        path.split('/').try_fold(self, |value, step| match value {
            Json::List(items) => items.get(step.parse::<usize>().ok()?),
            other => other.get(step),
        })
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Json::Text(text) = self { Some(text) } else { None }
    }

    /// The whole number, if it is one.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        if let Json::Whole(number) = self { Some(*number) } else { None }
    }

    /// The items of a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Json]> {
        if let Json::List(items) = self { Some(items) } else { None }
    }

    /// The names and values of an object.
    #[must_use]
    pub fn as_map(&self) -> Option<&[(String, Json)]> {
        if let Json::Map(fields) = self { Some(fields) } else { None }
    }

    /// It is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Json::Null)
    }

    /// Its text, so that an error can show the value; cut at 200 characters.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        write::shown(self, &mut text);
        if let Some((cut, _)) = text.char_indices().nth(200) {
            text.truncate(cut);
            text.push('…');
        }
        text
    }
}

/// JSON, cut at 200 characters.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}
