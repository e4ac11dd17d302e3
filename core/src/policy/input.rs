//! A policy as it was written, before anything is known of its meaning: JSON, or a binding's own values.
//!
//! Unlike `serde_json::Value` it keeps what a policy must refuse: a key given twice, NaN, an infinite number.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// One value of a policy as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Nothing: for a field that can be unset, unset.
    Null,
    /// A truth value.
    Flag(bool),
    /// A number. From Python and JS it may be a duration; from JSON it never is.
    Number(f64),
    /// Text, durations among it.
    Text(String),
    /// A list.
    List(Vec<Input>),
    /// Names and values, in the order written.
    Map(Vec<(String, Input)>),
}

impl Input {
    /// Reads JSON.
    ///
    /// # Errors
    /// What `serde_json` says of text that is not JSON.
    pub fn from_json(text: &str) -> Result<Input, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// JSON, so that an error can show the value; cut at 200 characters.
impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text);
        match text.char_indices().nth(200) {
            Some((cut, _)) => write!(f, "{}…", &text[..cut]),
            None => f.write_str(&text),
        }
    }
}

impl Input {
    /// Appends the JSON of the value, until there is more than an error shows.
    fn write(&self, out: &mut String) {
        if out.len() > 1_000 {
            return;
        }
        match self {
            Input::Null => out.push_str("null"),
            Input::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Input::Number(number) => out.push_str(&number.to_string()),
            Input::Text(text) => out.push_str(&serde_json::Value::from(text.as_str()).to_string()),
            Input::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Input::Map(fields) => {
                out.push('{');
                for (i, (name, value)) in fields.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    out.push_str(&serde_json::Value::from(name.as_str()).to_string());
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Input, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Input;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Input, E> {
        Ok(Input::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Input, E> {
        Ok(Input::Flag(flag))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Input, E> {
        Ok(Input::Number(number))
    }

    #[expect(clippy::cast_precision_loss, reason = "no field takes a number above 2^53")]
    fn visit_u64<E>(self, number: u64) -> Result<Input, E> {
        Ok(Input::Number(number as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "no field takes a number above 2^53")]
    fn visit_i64<E>(self, number: i64) -> Result<Input, E> {
        Ok(Input::Number(number as f64))
    }

    fn visit_str<E>(self, text: &str) -> Result<Input, E> {
        Ok(Input::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Input, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Input::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Input, A::Error> {
        let mut map = Vec::new();
        while let Some(field) = fields.next_entry()? {
            map.push(field);
        }
        Ok(Input::Map(map))
    }
}
