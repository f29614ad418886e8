//! Takes words of a request out of what a provider says about its error, because providers quote
//! prompts and the log has no words of people. Pure.
//!
//! A single common word is in both by chance, and a sentence with holes helps nobody. So runs of
//! words leave, and what stands in quotation marks, and numbers and addresses.

use super::ModelMessage;

/// The longest sentence for the log, in characters.
const MAX_CHARS: usize = 300;
/// So many words in a row are a quote, however ordinary they are.
const QUOTED_WORDS: usize = 6;
/// Shorter messages and numbers, such as "ok" and 401, are in many sentences by chance.
const SHORTEST_QUOTE: usize = 4;
const LEFT_OUT: &str = "…";
/// Words that providers use about their errors. They tell nothing by themselves.
const ORDINARY: &str = "\
    a about access account address after again all allow allowed also an and another any api are \
    array as ask asked at authentication authorized available bad balance be because been before \
    between billing blocked body both but by call calls can cannot capacity change check contact \
    content context could credit credits current currently day days demand denied details did \
    different do docs document documentation does doesn done down each either email enable \
    enabled endpoint error every exceeded exceeds exist expected expired failed field file files \
    first for format found free from function get give given go has have header help here high \
    hour hours how i if image images in incorrect information input instead insufficient \
    internal into invalid is it its json key keys last later least length less limit limits link \
    load long made make many max maximum may me message messages might minute missing model \
    models month more most must my name need needs new no not number object of on one only or \
    organization other our out output over overloaded page paid parameter path payment per \
    permission plan please policy project prompt provided pulling quota rate reached read region \
    rejected request requests required reset resets retry role said same say says second seconds \
    see send sent server service set should size so some still string such support supported \
    supports temporarily text than that the their them then there they this tier time to token \
    tokens too tool tools try two type types unauthorized unavailable under unknown unsupported \
    up upgrade upstream url us usage use used user using valid value via visit wait was we were \
    what when which who why will with within without would yet you your";

/// The texts of a request, each as its words in small letters, with a space around every word.
struct Sent {
    /// Of people, agents and tools.
    messages: Vec<String>,
    system: String,
}

/// The sentence without words of the request; none if nothing else was said.
pub(super) fn without_quotes(
    said: &str,
    system: &str,
    messages: &[ModelMessage],
) -> Option<String> {
    let sent = Sent {
        messages: messages.iter().map(text).map(spaced).collect(),
        system: spaced(system),
    };
    let words: Vec<&str> = said.split_whitespace().collect();
    let short = shortened(&kept(&words, &sent).join(" "));
    short.contains(char::is_alphanumeric).then_some(short)
}

fn text(message: &ModelMessage) -> &str {
    match message {
        ModelMessage::User(content) => &content.text,
        ModelMessage::Assistant { text, .. } => text,
        ModelMessage::ToolResult { content, .. } => content,
    }
}

fn kept<'a>(words: &[&'a str], sent: &Sent) -> Vec<&'a str> {
    let mut is_quoted = vec![false; words.len()];
    for length in 1..=QUOTED_WORDS {
        for (start, window) in words.windows(length).enumerate() {
            if sent.is_quoted(window) {
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

impl Sent {
    /// Whether these words of a provider are words of the request, and hardly by chance.
    fn is_quoted(&self, said: &[&str]) -> bool {
        let (whole, raw) = (spaced(&said.join(" ")), said.join(" "));
        let mut texts = self.messages.iter().chain([&self.system]);
        let is_long = whole.trim().chars().count() >= SHORTEST_QUOTE;
        if !is_long || !texts.any(|text| text.contains(&whole)) {
            return false;
        }
        let telling = whole.split_whitespace().filter(|word| !is_ordinary(word));
        let telling = telling.count();
        let is_in_marks = raw.starts_with(is_quotation_mark) && raw.ends_with(is_mark);
        let is_message = self.messages.contains(&whole);
        let is_run = said.len() > 1 && telling > 1;
        said.len() >= QUOTED_WORDS
            || is_run
            || (telling > 0 && (is_in_marks || is_message))
            || (said.len() == 1 && self.is_number(&raw, &whole))
    }

    /// Numbers and addresses of people tell much, even alone. The system prompt has dates.
    fn is_number(&self, raw: &str, whole: &str) -> bool {
        raw.contains(|c: char| c.is_ascii_digit() || c == '@')
            && self.messages.iter().any(|text| text.contains(whole))
    }
}

fn is_ordinary(word: &str) -> bool {
    ORDINARY.split_whitespace().any(|known| known == word)
}

fn is_quotation_mark(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '“' | '‘' | '«')
}

fn is_mark(c: char) -> bool {
    !c.is_alphanumeric()
}

/// The words of a text in small letters, with a space around every word.
fn spaced(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(is_mark).filter(|word| !word.is_empty());
    format!(" {} ", words.collect::<Vec<_>>().join(" "))
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
        assert_snapshot!(said("4711, near nobody: hunter2"), @"… near nobody: hunter2");
        assert_snapshot!(said("Blocked: door code, as the policy says"), @"Blocked: … as the policy says");
        assert_snapshot!(said("Input hello is not supported"), @"Input … is not supported");
        assert_snapshot!(said("hello"), @"nothing");
        assert_snapshot!(said("The key is not valid"), @"The key is not valid");
    }

    /// Common words are in every prompt, and a sentence with holes helps nobody.
    #[test]
    fn a_providers_own_sentence_stays_whole() {
        let messages = [
            ModelMessage::user("do as the server says, and ask for access again; try it 401 times"),
            ModelMessage::user("billing"),
        ];
        let system =
            "You do not have to say much. If you do not know, ask. Please try again later.";
        let sentences = [
            "You do not have access to it.",
            "Please ask billing, or try again later.",
            "fake says 401: Incorrect API key provided.",
            "Rate limit reached: please wait 20 seconds and try again.",
        ];
        for sentence in sentences {
            let said = without_quotes(sentence, system, &messages);
            assert_eq!(said.as_deref(), Some(sentence));
        }
    }

    #[test]
    fn a_sentence_is_short() {
        let cut = without_quotes(&"word ".repeat(200), "", &[]).expect("a sentence");
        assert_eq!(cut.chars().count(), MAX_CHARS);
    }
}
