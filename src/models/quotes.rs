//! Takes words of a request out of what a provider says about its error, because providers quote
//! prompts and the log has no words of people. Pure.

use super::ModelMessage;

/// The longest sentence for the log, in characters.
const MAX_CHARS: usize = 300;
/// So many words in a row are a quote.
const QUOTED_WORDS: usize = 4;
/// Shorter messages, such as "ok", are in many sentences by chance.
const SHORTEST_QUOTE: usize = 4;
const LEFT_OUT: &str = "…";
/// Words that providers use about their errors. Any other word leaves if the request has it too.
const ORDINARY: &[&str] = &[
    "a",
    "an",
    "and",
    "any",
    "api",
    "are",
    "as",
    "at",
    "be",
    "been",
    "by",
    "can",
    "cannot",
    "for",
    "from",
    "has",
    "have",
    "if",
    "in",
    "is",
    "it",
    "its",
    "may",
    "must",
    "new",
    "no",
    "not",
    "of",
    "on",
    "or",
    "our",
    "should",
    "than",
    "that",
    "the",
    "their",
    "this",
    "to",
    "too",
    "was",
    "with",
    "you",
    "your",
    "more",
    "most",
    "please",
    "try",
    "again",
    "later",
    "see",
    "use",
    "used",
    "using",
    "were",
    "will",
    "access",
    "account",
    "authentication",
    "authorized",
    "bad",
    "balance",
    "billing",
    "blocked",
    "check",
    "content",
    "context",
    "credit",
    "credits",
    "current",
    "denied",
    "does",
    "error",
    "exceeded",
    "exceeds",
    "exist",
    "expected",
    "expired",
    "failed",
    "field",
    "found",
    "incorrect",
    "input",
    "insufficient",
    "internal",
    "invalid",
    "key",
    "keys",
    "length",
    "limit",
    "limits",
    "long",
    "many",
    "max",
    "maximum",
    "message",
    "messages",
    "minute",
    "missing",
    "model",
    "models",
    "name",
    "number",
    "only",
    "organization",
    "output",
    "overloaded",
    "parameter",
    "permission",
    "plan",
    "policy",
    "project",
    "prompt",
    "provided",
    "pulling",
    "quota",
    "rate",
    "reached",
    "read",
    "region",
    "rejected",
    "request",
    "requests",
    "required",
    "role",
    "seconds",
    "server",
    "service",
    "size",
    "string",
    "supported",
    "token",
    "tokens",
    "tool",
    "tools",
    "unauthorized",
    "unavailable",
    "unknown",
    "unsupported",
    "upstream",
    "user",
    "valid",
    "value",
];

/// The sentence without words of the request; none if nothing else was said.
pub(super) fn without_quotes(
    said: &str,
    system: &str,
    messages: &[ModelMessage],
) -> Option<String> {
    let texts: Vec<String> = messages
        .iter()
        .map(text)
        .chain([system])
        .map(plain)
        .filter(|text| !text.is_empty())
        .collect();
    let words: Vec<&str> = said.split_whitespace().collect();
    let short = shortened(&kept(&words, &texts).join(" "));
    short.contains(char::is_alphanumeric).then_some(short)
}

fn text(message: &ModelMessage) -> &str {
    match message {
        ModelMessage::User(content) => &content.text,
        ModelMessage::Assistant { text, .. } => text,
        ModelMessage::ToolResult { content, .. } => content,
    }
}

fn kept<'a>(words: &[&'a str], texts: &[String]) -> Vec<&'a str> {
    let mut is_quoted = vec![false; words.len()];
    for length in 1..=QUOTED_WORDS {
        for (start, window) in words.windows(length).enumerate() {
            if quotes(window, texts) {
                is_quoted[start..start + length].fill(true);
            }
        }
    }
    let mut kept = Vec::new();
    for (word, is_quoted) in words.iter().zip(is_quoted) {
        match is_quoted {
            false => kept.push(*word),
            true if kept.last() != Some(&LEFT_OUT) => kept.push(LEFT_OUT),
            true => {}
        }
    }
    kept
}

/// Whether the words are a whole text, a word of a text that is no ordinary word of errors, stand in
/// quotation marks and are in a text, or are as many in a row as are hardly in both by chance.
fn quotes(words: &[&str], texts: &[String]) -> bool {
    let whole = plain(&words.join(" "));
    let bare = whole.trim_matches(is_mark);
    if words.len() == 1 && !bare.is_empty() && !ORDINARY.contains(&bare) {
        return texts.iter().any(|text| has_word(text, bare));
    }
    if bare.chars().count() < SHORTEST_QUOTE {
        return false;
    }
    let is_in_marks = whole.starts_with(is_quotation_mark) && whole.ends_with(is_mark);
    let is_long = words.len() >= QUOTED_WORDS;
    texts.iter().any(|text| {
        text.trim_matches(is_mark) == bare || ((is_in_marks || is_long) && text.contains(bare))
    })
}

/// A word of letters is in others by chance, so it counts as a whole only.
fn has_word(text: &str, word: &str) -> bool {
    if word.chars().all(char::is_alphabetic) {
        return text.split(is_mark).any(|known| known == word);
    }
    text.contains(word)
}

fn is_quotation_mark(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '“' | '‘' | '«')
}

fn is_mark(c: char) -> bool {
    !c.is_alphanumeric()
}

/// In small letters, with single spaces.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}{LEFT_OUT}", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn words_of_people_are_left_out() {
        let messages = [
            ModelMessage::user("My door code is 4711, tell nobody"),
            ModelMessage::user("hello"),
        ];
        let said = |text: &str| {
            without_quotes(text, "You are Rose. Keep it short and kind.", &messages)
                .unwrap_or_else(|| "nothing".into())
        };
        assert_snapshot!(said("Invalid input: My door code is 4711, tell nobody"), @"Invalid input: …");
        assert_snapshot!(said("Invalid input: 'hello'"), @"Invalid input: …");
        assert_snapshot!(said("Blocked near \"door code\" by policy"), @"Blocked near … by policy");
        assert_snapshot!(said("messages[0]: keep it SHORT and kind, please"), @"messages[0]: … please");
        assert_snapshot!(said("4711, near nobody: hunter2"), @"… near … hunter2");
        assert_snapshot!(said("hello"), @"nothing");
        assert_snapshot!(said("The key is not valid"), @"The key is not valid");
    }

    #[test]
    fn a_sentence_is_short() {
        let cut = without_quotes(&"word ".repeat(200), "", &[]).expect("a sentence");
        assert_eq!(cut.chars().count(), MAX_CHARS);
    }
}
