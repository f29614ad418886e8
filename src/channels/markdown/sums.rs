//! Tells the `*` of a sum from the `*` of an emphasis.
//!
//! CommonMark takes `2*3*4` for an emphasised 3. Sums are written more often than words are
//! emphasised in their middle, so a `*` between two operands is escaped before anything else looks
//! at the text.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag};

use super::options;

/// A pair taken for a sum may leave another pair. Each round parses the text, so rounds are few.
const MOST_ROUNDS: usize = 6;

/// `*` and `**` are operators; a longer row is none.
const LONGEST_OPERATOR: usize = 2;

/// Scripts from here on are mostly written without spaces, so emphasis stands between letters as a
/// matter of course.
const FIRST_WITHOUT_SPACES: char = '\u{e00}';

/// The same text, with each `*` of a sum escaped.
pub(crate) fn with_sums_kept(markdown: Cow<'_, str>) -> Cow<'_, str> {
    let mut text = markdown;
    for _ in 0..MOST_ROUNDS {
        let stars = if has_sums(&text) {
            stars_of_sums(&text)
        } else {
            BTreeSet::new()
        };
        if stars.is_empty() {
            break;
        }
        text = escaped(&text, &stars).into();
    }
    text
}

/// Costs less than reading the Markdown, and most texts have none.
fn has_sums(text: &str) -> bool {
    text.match_indices('*')
        .any(|(at, _)| Star::at(text, at).is_between_operands())
}

/// Places of each `*` taken for emphasis, though part of a sum.
fn stars_of_sums(text: &str) -> BTreeSet<usize> {
    let emphases = Parser::new_ext(text, options())
        .into_offset_iter()
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Emphasis) => Some((1, range)),
            Event::Start(Tag::Strong) => Some((2, range)),
            _ => None,
        });
    emphases
        .filter(|(_, range)| text[range.clone()].starts_with('*'))
        .flat_map(|(length, range)| in_sum(text, length, range))
        .collect()
}

/// The marks of an emphasis that belong to a sum.
fn in_sum(text: &str, length: usize, range: Range<usize>) -> Vec<usize> {
    let (open, close) = (Star::at(text, range.start), Star::at(text, range.end - 1));
    let is_spaced = text[range.start + length..range.end - length].contains(char::is_whitespace);
    let are_both = open.is_between_operands() && close.is_between_operands();
    let is_sum = match length {
        1 => are_both,
        // `**H**yper**T**ext` is emphasised, `x**2 + y**2` is not.
        _ => are_both && (open.touches_digit() || close.touches_digit() || is_spaced),
    };
    // One of the two may be a mark: `*Note: 5*6 = 30*`. But `*H*yper` and `**3**rd` are emphasised.
    let is_operator = |star: &Star| match length {
        1 => star.touches_digit() || is_spaced,
        _ => is_spaced && star.after.is_some_and(|after| after.is_ascii_digit()),
    };
    let belongs = |star: &&Star| is_sum || (star.is_between_operands() && is_operator(star));
    [&open, &close]
        .into_iter()
        .filter(belongs)
        .flat_map(|star| star.run.clone())
        .collect()
}

/// Several `*` in a row, with the characters around.
struct Star {
    run: Range<usize>,
    before: Option<char>,
    after: Option<char>,
}

impl Star {
    fn at(text: &str, position: usize) -> Self {
        // Only as far as needed to see a too long row: a text may have thousands.
        let is_star = |byte: &u8| *byte == b'*';
        let start = position
            - text.as_bytes()[..position]
                .iter()
                .rev()
                .take(LONGEST_OPERATOR)
                .take_while(|byte| is_star(byte))
                .count();
        let end = position
            + text.as_bytes()[position..]
                .iter()
                .take(LONGEST_OPERATOR + 1)
                .take_while(|byte| is_star(byte))
                .count();
        Star {
            run: start..end,
            before: text[..start].chars().next_back(),
            after: text[end..].chars().next(),
        }
    }

    fn is_between_operands(&self) -> bool {
        self.run.len() <= LONGEST_OPERATOR
            && self
                .before
                .is_some_and(|before| is_of_word(before) || matches!(before, ')' | ']'))
            && self
                .after
                .is_some_and(|after| is_of_word(after) || matches!(after, '(' | '['))
    }

    fn touches_digit(&self) -> bool {
        [self.before, self.after]
            .into_iter()
            .flatten()
            .any(|c| c.is_ascii_digit())
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() && c < FIRST_WITHOUT_SPACES
}

fn escaped(text: &str, stars: &BTreeSet<usize>) -> String {
    let mut written = String::with_capacity(text.len() + stars.len());
    let mut from = 0;
    for &star in stars {
        written.push_str(&text[from..star]);
        written.push('\\');
        from = star;
    }
    written + &text[from..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(with_sums_kept(text.into()), expected, "{text}");
    }

    #[test]
    fn sums_keep_their_stars() {
        check("2*3*4 = 24", r"2\*3\*4 = 24");
        check("a*b*c", r"a\*b\*c");
        check("2*π*r", r"2\*π\*r");
        check("5*6 = 30 and 7*8 = 56", r"5\*6 = 30 and 7\*8 = 56");
        check("1*2*3*4*5", r"1\*2\*3\*4\*5");
        check("x**2 + y**2 = z**2", r"x\*\*2 + y\*\*2 = z**2");
        check("width*height*depth", r"width\*height\*depth");
        check("2*(3)*4*(5)", r"2*(3)\*4\*(5)");
        check("*Note: 5*6 = 30*", r"*Note: 5\*6 = 30*");
        check("**Note: x**2 + 1**", r"**Note: x\*\*2 + 1**");
        check("f(*args) is not a*b", r"f(*args) is not a\*b");
        check("**2*3*4** is bold", r"**2\*3\*4** is bold");
        check("https://example.com/a*b*c", r"https://example.com/a\*b\*c");
        check("- 2*3*4\n- 5*6*7", "- 2\\*3\\*4\n- 5\\*6\\*7");
    }

    #[test]
    fn what_needs_no_escape_has_none() {
        for text in [
            "2 * 3 * 4",
            "7*8",
            "`2*3*4`",
            "```\n2*3*4\n```",
            r"2\*3\*4",
            "f(*args, **kwargs)",
            "[a](https://example.com/a*b*c)",
            "* one\n* two",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn emphasis_stays() {
        for text in [
            "*one* **two** ***three***",
            "**H**yper**T**ext **M**arkup",
            "*H*yper",
            "**3**rd, **10**x, (*so*)",
            "这是**重要**的*事*情",
            "**1.** first *and* second",
            "un_frigging_believable",
            "a***b***c",
        ] {
            check(text, text);
        }
    }

    proptest! {
        /// Nothing but backslashes is added, and doing it again adds none.
        #[test]
        fn only_backslashes_are_added(text in r"[a-c1-3*()_` \\\n]{0,40}") {
            let kept = with_sums_kept(Cow::Borrowed(&text));
            prop_assert_eq!(kept.replace('\\', ""), text.replace('\\', ""));
        }
    }
}
