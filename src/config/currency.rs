//! The currency of all prices, such as `USD`.

use std::fmt;
use std::str::FromStr;

use super::reader::Section;
use super::{Money, Problem};

/// Three capital letters, as in ISO 4217. Only shown, never converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency(String);

impl Default for Currency {
    fn default() -> Self {
        Currency("USD".into())
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Currency {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_code = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase());
        is_code.then(|| Currency(text.to_owned())).ok_or(())
    }
}

impl Money {
    /// The amount for people, such as `0.25 USD`.
    pub(crate) fn in_currency(self, currency: &Currency) -> String {
        format!("{self} {currency}")
    }
}

pub(super) fn read(top: &Section<'_>) -> Currency {
    let Some(text) = top.text("currency") else {
        return Currency::default();
    };
    text.value.parse().unwrap_or_else(|()| {
        let problem = Problem::new(text.span, "`currency` is not the code of a currency")
            .label("expected three capital letters")
            .help("write it like `currency = \"EUR\"`");
        top.problems.note(problem);
        Currency::default()
    })
}
