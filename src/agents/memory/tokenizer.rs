//! Splits a text into words, for the index and for questions alike. Pure.

/// Longer words count with their beginning.
const MAX_WORD_CHARS: usize = 48;

/// The words of a text in their order, in lower case. Writing without spaces gives every two
/// neighbouring characters.
pub(super) fn words(text: &str) -> Vec<String> {
    // A letter with its accent beside is the same letter, also for the index.
    let without_accents: String = text
        .chars()
        .filter(|c| !('\u{300}'..='\u{36f}').contains(c))
        .collect();
    let mut found = Vec::new();
    for run in without_accents
        .split(|c: char| !c.is_alphanumeric())
        .filter(|run| !run.is_empty())
    {
        take_run(run, &mut found);
    }
    found
}

/// Like [`words`], without repetitions.
pub(super) fn distinct(text: &str) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    words(text)
        .into_iter()
        .filter(|word| seen.insert(word.clone()))
        .collect()
}

/// A word as stored in the index. A search with another number never finds the word.
pub(super) fn scoped(number: i64, word: &str) -> String {
    // Digits and a consonant: the stemmer behind the index looks at vowels, and so leaves the
    // prefix alone.
    format!("{number}q{word}")
}

/// The text for the index.
pub(super) fn indexed(number: i64, text: &str) -> String {
    words(text)
        .iter()
        .map(|word| scoped(number, word))
        .collect::<Vec<_>>()
        .join(" ")
}

fn take_run(run: &str, found: &mut Vec<String>) {
    let letters: Vec<char> = run.chars().collect();
    for part in letters.chunk_by(|one, next| is_unspaced(*one) == is_unspaced(*next)) {
        if is_unspaced(part[0]) && part.len() > 1 {
            found.extend(part.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else {
            found.push(
                part.iter()
                    .take(MAX_WORD_CHARS)
                    .collect::<String>()
                    .to_lowercase(),
            );
        }
    }
}

/// Chinese characters and Japanese kana, which are written without spaces.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_people_would_search_for() {
        let check = |text: &str, expected: &[&str]| assert_eq!(words(text), expected, "{text}");
        check(
            "Invoice #42, for Élodie!",
            &["invoice", "42", "for", "élodie"],
        );
        check("Ze\u{301}ro", &["zero"]);
        check(
            "a\"b OR c* NEAR(d) -e ^f",
            &["a", "b", "or", "c", "near", "d", "e", "f"],
        );
        check("记忆搜索 ok 猫", &["记忆", "忆搜", "搜索", "ok", "猫"]);
        check("v2的计划", &["v2", "的计", "计划"]);
        check("", &[]);
        check("?!…", &[]);
        assert_eq!(words(&"x".repeat(100))[0].len(), MAX_WORD_CHARS);
    }

    #[test]
    fn a_number_and_a_word_are_never_another_number_and_word() {
        assert_ne!(scoped(1, "2qx"), scoped(12, "qx"));
        assert_ne!(scoped(1, "qx"), scoped(1, "x"));
        assert_eq!(indexed(3, "Tea, please"), "3qtea 3qplease");
    }
}
