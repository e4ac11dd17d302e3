//! The tree, as `serde_json` reads it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::Json;

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Json, E> {
        Ok(Json::Flag(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Whole(number))
    }

    #[expect(clippy::cast_precision_loss, reason = "no field takes a number below zero: an error shows it")]
    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json, E> {
        Ok(Json::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json, A::Error> {
        let mut map = Vec::new();
        while let Some(field) = fields.next_entry()? {
            map.push(field);
        }
        Ok(Json::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn numbers_and_shapes() {
        let cases = [
            ("0", Json::Whole(0)),
            ("18446744073709551615", Json::Whole(u64::MAX)),
            ("18446744073709551616", Json::Number(18_446_744_073_709_551_616.0)),
            ("-3", Json::Number(-3.0)),
            ("1.0", Json::Number(1.0)),
            ("25E-2", Json::Number(0.25)),
        ];
        for (text, expected) in cases {
            assert_eq!(Json::parse(text).unwrap(), expected, "{text}");
        }
        let read = Json::parse(" { \"a\" : [ ] , \"b\":{}, \"c\": [true, false, null] } ").unwrap();
        assert_eq!(read.find("c/0"), Some(&Json::Flag(true)));
        assert_eq!(read.find("c/3"), None);
        assert_eq!(read.get("a").and_then(Json::as_list), Some(&[][..]));
        assert!(Json::parse(&"[".repeat(1_000_000)).is_err(), "depth is bounded");
    }
}
