//! Helps to read the JSON of careless servers.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::bounds::within_values;
use super::classify::unreadable;
use crate::models::ModelError;

/// An event as a type with only the fields of interest.
pub(super) fn read<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, ModelError> {
    within_values(data)?;
    serde_json::from_str(data).map_err(|_| unreadable())
}

/// A field that may be missing, null or of another type: each of these is the default.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// Arguments of a tool call: most servers send JSON inside a string, piece by piece, others the
/// JSON itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arguments<'a> {
    Piece(String),
    Whole(&'a str),
}

impl<'a> Arguments<'a> {
    /// `None` for arguments that are missing or null.
    pub(super) fn of(raw: Option<&'a RawValue>) -> Option<Self> {
        let raw = raw?.get();
        match serde_json::from_str::<Option<String>>(raw) {
            Ok(piece) => piece.map(Arguments::Piece),
            Err(_) => Some(Arguments::Whole(raw)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, Default)]
    #[serde(default)]
    struct Odd<'a> {
        #[serde(deserialize_with = "lenient")]
        text: String,
        #[serde(deserialize_with = "lenient")]
        number: Option<u64>,
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }

    #[test]
    fn odd_fields_are_the_default() {
        let check = |json: &str, text: &str, number| {
            let odd: Odd = read(json).expect("an object is readable");
            assert_eq!((odd.text.as_str(), odd.number), (text, number), "{json}");
        };
        check("{}", "", None);
        check(r#"{"text": null, "number": null}"#, "", None);
        check(r#"{"text": 7, "number": "7"}"#, "", None);
        check(r#"{"text": "a", "number": 7, "other": [1]}"#, "a", Some(7));
        check(r#"{"text": {"a": [1]}, "number": -1}"#, "", None);
        assert_eq!(read::<Odd>("[DONE]").err(), Some(unreadable()));
    }

    #[test]
    fn arguments_come_as_text_or_as_json() {
        let check = |json: &str, expected: Option<Arguments>| {
            let odd: Odd = read(json).expect("an object is readable");
            assert_eq!(Arguments::of(odd.arguments), expected, "{json}");
        };
        check("{}", None);
        check(r#"{"arguments": null}"#, None);
        check(
            r#"{"arguments": "{\"a\":"}"#,
            Some(Arguments::Piece(r#"{"a":"#.to_owned())),
        );
        check(
            r#"{"arguments": {"a": 1}}"#,
            Some(Arguments::Whole(r#"{"a": 1}"#)),
        );
    }
}
