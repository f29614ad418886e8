//! The bot's nicknames in groups, besides its @name.

use crate::config::Config;
use crate::domain::Platform;

/// Nicknames as they are looked for: word by word, in lower case.
pub(super) struct Nicknames {
    phrases: Vec<Vec<String>>,
}

impl Nicknames {
    pub(super) fn new(names: &[String]) -> Self {
        let phrase = |name: &String| {
            words(name)
                .map(|word| word.text.to_lowercase())
                .collect::<Vec<_>>()
        };
        Nicknames {
            phrases: names
                .iter()
                .map(phrase)
                .filter(|phrase| !phrase.is_empty())
                .collect(),
        }
    }

    /// Whether the text has a nickname, as whole words. `Hey, Rose!` is `hey rose`.
    pub(super) fn are_in(&self, text: &str) -> bool {
        if self.phrases.is_empty() {
            return false;
        }
        let spoken = words(text).map(|word| {
            if word.is_a_sign {
                String::new()
            } else {
                word.text.to_lowercase()
            }
        });
        let spoken: Vec<String> = spoken.collect();
        self.phrases
            .iter()
            .any(|phrase| spoken.windows(phrase.len()).any(|window| window == phrase))
    }
}

/// Whether a text calls the bot of a platform by a nickname.
pub(crate) fn calls_the_bot(config: &Config, platform: Platform, text: &str) -> bool {
    let platform = config.platform(platform);
    platform.is_some_and(|platform| Nicknames::new(&platform.nicknames).are_in(text))
}

struct Word<'a> {
    text: &'a str,
    /// An @name, a /command, a #tag or a part of an address is no nickname.
    is_a_sign: bool,
}

fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let is_outside = |c: char| !c.is_alphanumeric() && c != '_';
    let mut before = None;
    text.split_inclusive(is_outside).filter_map(move |chunk| {
        let word = Word {
            text: chunk.trim_end_matches(is_outside),
            is_a_sign: matches!(before, Some('@' | '/' | '#')),
        };
        before = chunk.chars().next_back();
        (!word.text.is_empty()).then_some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nickname_counts_as_whole_words_only() {
        let names = Nicknames::new(&["parlor".into(), "Hey Rose".into(), "Éva".into()]);
        for called in [
            "parlor, what is up",
            "PARLOR?",
            "ask Parlor",
            "Hey, rose!",
            "oh hey   rose",
            "(éva)",
            "Parlor's turn",
        ] {
            assert!(names.are_in(called), "{called}");
        }
        for other in [
            "",
            "parlors",
            "rose",
            "hey primrose",
            "hey there rose",
            "@parlor hi",
            "/parlor",
            "#parlor",
            "parlor_two",
        ] {
            assert!(!names.are_in(other), "{other}");
        }
        assert!(!Nicknames::new(&["…".into()]).are_in("… anything"));
        assert!(!Nicknames::new(&[]).are_in("anything"));
    }
}
