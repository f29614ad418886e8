//! Name patterns: `*` stands for any text, `?` for any single character, and case does not matter.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    written: String,
    symbols: Vec<Symbol>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symbol {
    AnyText,
    AnyChar,
    Char(char),
}

impl Glob {
    pub(super) fn parse(text: &str) -> Self {
        Glob {
            written: text.to_owned(),
            symbols: text.chars().map(Symbol::parse).collect(),
        }
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        let mut text = name.chars().map(fold);
        let mut at = 0;
        let mut after_star = None;
        loop {
            if self.symbols.get(at) == Some(&Symbol::AnyText) {
                at += 1;
                after_star = Some((at, text.clone()));
                continue;
            }
            match (self.symbols.get(at), text.next()) {
                (None, None) => return true,
                (Some(symbol), Some(char)) if symbol.takes(char) => at += 1,
                (Some(_), None) => return false,
                (_, Some(_)) => {
                    // A dead end: the last star takes another character, and the rest is tried
                    // again.
                    let Some((resume, rest)) = &mut after_star else {
                        return false;
                    };
                    rest.next();
                    (at, text) = (*resume, rest.clone());
                }
            }
        }
    }

    /// Whether some name matches both.
    pub(super) fn overlaps(&self, other: &Glob) -> bool {
        let (a, b) = (&self.symbols, &other.symbols);
        !starts_differ(a, b) && can_both_match(a, b)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Symbol {
    fn parse(char: char) -> Self {
        match char {
            '*' => Symbol::AnyText,
            '?' => Symbol::AnyChar,
            char => Symbol::Char(fold(char)),
        }
    }

    fn takes(self, char: char) -> bool {
        match self {
            Symbol::AnyText | Symbol::AnyChar => true,
            Symbol::Char(own) => own == char,
        }
    }

    fn meets(self, other: Symbol) -> bool {
        match (self, other) {
            (Symbol::Char(a), Symbol::Char(b)) => a == b,
            _ => true,
        }
    }
}

/// Case does not matter for letters with a small form of a single character, because `?` stands for
/// a single character.
pub(super) fn fold(char: char) -> char {
    let mut small = char.to_lowercase();
    match (small.next(), small.next()) {
        (Some(single), None) => single,
        _ => char,
    }
}

/// A quick test, because most names in a group differ at their beginning.
fn starts_differ(a: &[Symbol], b: &[Symbol]) -> bool {
    let neither_is_star =
        |pair: &(&Symbol, &Symbol)| *pair.0 != Symbol::AnyText && *pair.1 != Symbol::AnyText;
    a.iter()
        .zip(b)
        .take_while(neither_is_star)
        .any(|(a, b)| !a.meets(*b))
}

/// Fills in, from the end, whether `a[i..]` and `b[j..]` have a text in common; `below` is the row
/// for `i + 1`.
fn can_both_match(a: &[Symbol], b: &[Symbol]) -> bool {
    let mut below: Vec<bool> = Vec::new();
    for i in (0..=a.len()).rev() {
        let mut row = vec![false; b.len() + 1];
        for j in (0..=b.len()).rev() {
            row[j] = match (a.get(i), b.get(j)) {
                (None, None) => true,
                (Some(Symbol::AnyText), None) => below[j],
                (None, Some(Symbol::AnyText)) => row[j + 1],
                (Some(Symbol::AnyText), Some(_)) | (Some(_), Some(Symbol::AnyText)) => {
                    below[j] || row[j + 1]
                }
                (Some(a), Some(b)) => a.meets(*b) && below[j + 1],
                (None, Some(_)) | (Some(_), None) => false,
            };
        }
        below = row;
    }
    below[0]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_and_question_marks_match_names() {
        for (glob, name, expected) in [
            ("ops", "ops", true),
            ("ops", "Ops", true),
            ("ÄRGER*", "ärger mit dem server", true),
            ("ops", "opsy", false),
            ("ops*", "opsy", true),
            ("ops*", "ops", true),
            ("*ops", "devops", true),
            ("*ops*bug?", "my ops: bugs bug1", true),
            ("*ops*bug?", "my ops: bug", false),
            ("o?s", "ops", true),
            ("o?s", "os", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("a*b*c", "a-b-b-cc", true),
            ("a*b*c", "a-c-b", false),
        ] {
            assert_eq!(
                Glob::parse(glob).matches(name),
                expected,
                "{glob} on {name}"
            );
        }
    }

    #[test]
    fn patterns_overlap_when_one_name_fits_both() {
        for (a, b, expected) in [
            ("ops", "OPS", true),
            ("ops", "dev", false),
            ("ops*", "*dev", true),
            ("ops*", "dev*", false),
            ("*a", "*b", false),
            ("a?", "?b", true),
            ("a?", "abc", false),
            ("*x*", "y", false),
            ("*", "", true),
            ("?*", "", false),
            ("a*c", "ab*", true),
        ] {
            assert_eq!(
                Glob::parse(a).overlaps(&Glob::parse(b)),
                expected,
                "{a} and {b}"
            );
            assert_eq!(
                Glob::parse(b).overlaps(&Glob::parse(a)),
                expected,
                "{b} and {a}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_name_that_fits_both_proves_the_overlap(a in "[ab*?]{0,6}", b in "[ab*?]{0,6}", name in "[ab]{0,6}") {
            let (a, b) = (Glob::parse(&a), Glob::parse(&b));
            if a.matches(&name) && b.matches(&name) {
                prop_assert!(a.overlaps(&b));
            }
        }

        /// Names of up to eight letters are enough to find a common name for patterns this short.
        #[test]
        fn an_overlap_has_a_name_that_proves_it(a in "[ab*?]{0,4}", b in "[ab*?]{0,4}") {
            let (a, b) = (Glob::parse(&a), Glob::parse(&b));
            let found = short_names().any(|name| a.matches(&name) && b.matches(&name));
            prop_assert_eq!(a.overlaps(&b), found);
        }
    }

    fn short_names() -> impl Iterator<Item = String> {
        (0..=8_u32).flat_map(|length| {
            (0..1_u32 << length).map(move |bits| {
                (0..length)
                    .map(|at| if bits >> at & 1 == 1 { 'a' } else { 'b' })
                    .collect()
            })
        })
    }
}
