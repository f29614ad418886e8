//! Takes thoughts out of the text. Most servers send them apart, but some leave them in front of
//! the answer: `<think>the person wants …</think>Good morning.`

use crate::config::ProviderKind;

const OPENING: &str = "<think>";
const CLOSING: &str = "</think>";

/// Spaces before a thought. A longer beginning is no thought, and is not looked through again with
/// each piece.
const MAX_HELD_BYTES: usize = 1024;

/// The text of one answer, piece by piece.
pub(super) struct Spoken {
    state: State,
    /// Text that may be a thought or not.
    held: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was said yet.
    Beginning,
    Thinking,
    /// The thoughts are over, and spaces before the answer are left out.
    Leading,
    Speaking,
}

impl Spoken {
    /// Only servers that run others' models leave thoughts in.
    pub(super) fn new(kind: ProviderKind) -> Self {
        let may_think = matches!(kind, ProviderKind::OpenAi | ProviderKind::Ollama);
        Spoken {
            state: if may_think {
                State::Beginning
            } else {
                State::Speaking
            },
            held: String::new(),
        }
    }

    /// The part of the next piece for people.
    pub(super) fn take(&mut self, piece: String) -> Option<String> {
        if self.state == State::Speaking {
            return Some(piece).filter(|piece| !piece.is_empty());
        }
        self.held.push_str(&piece);
        if self.state == State::Beginning {
            self.begin();
        }
        if self.state == State::Thinking {
            self.think();
        }
        if self.state == State::Leading {
            self.held = self.held.trim_start().to_owned();
            self.state = if self.held.is_empty() {
                State::Leading
            } else {
                State::Speaking
            };
        }
        let speaks = self.state == State::Speaking && !self.held.is_empty();
        speaks.then(|| std::mem::take(&mut self.held))
    }

    fn begin(&mut self) {
        let said = self.held.trim_start();
        if let Some(thought) = said.strip_prefix(OPENING) {
            self.held = thought.to_owned();
            self.state = State::Thinking;
        } else if !OPENING.starts_with(said) || self.held.len() > MAX_HELD_BYTES {
            self.state = State::Speaking;
        }
    }

    fn think(&mut self) {
        match self.held.find(CLOSING) {
            Some(end) => {
                self.held.drain(..end + CLOSING.len());
                self.state = State::Leading;
            }
            // The end of the thought is kept: the closing word may be cut in two.
            None => {
                let kept = self
                    .held
                    .floor_char_boundary(self.held.len().saturating_sub(CLOSING.len()));
                self.held.drain(..kept);
            }
        }
    }

    /// Text still held at the end: a short answer could have been the beginning of a thought.
    pub(super) fn rest(&mut self) -> Option<String> {
        let held = std::mem::take(&mut self.held);
        (self.state == State::Beginning && !held.is_empty()).then_some(held)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spoken(kind: ProviderKind, pieces: &[&str]) -> String {
        let mut spoken = Spoken::new(kind);
        let mut said: String = pieces
            .iter()
            .filter_map(|piece| spoken.take((*piece).to_owned()))
            .collect();
        said.extend(spoken.rest());
        said
    }

    #[test]
    fn thoughts_in_front_of_an_answer_are_left_out() {
        let check = |pieces: &[&str], expected: &str| {
            assert_eq!(spoken(ProviderKind::OpenAi, pieces), expected, "{pieces:?}");
        };
        check(&["<think>hm</think>Good morning."], "Good morning.");
        check(
            &["\n<th", "ink>h", "m</th", "ink>\n", "\nGood ", "morning."],
            "Good morning.",
        );
        check(&["<think>", "</think>", "\n\n", "yes"], "yes");
        check(&["<think>never ends"], "");
        check(&["Good ", "morning."], "Good morning.");
        check(&["<", "b>"], "<b>");
        check(&["<thi"], "<thi");
        check(&["Write <think>x</think>."], "Write <think>x</think>.");
        check(&["  indented"], "  indented");
        check(&[""], "");
    }

    #[test]
    fn servers_that_send_thoughts_apart_are_left_alone() {
        assert_eq!(
            spoken(ProviderKind::Anthropic, &["<think>", "x</think>"]),
            "<think>x</think>"
        );
    }

    proptest! {
        /// However the answer is cut into pieces, the same is said.
        #[test]
        fn pieces_make_no_difference(text in "(<think>[a-zé<>/ ]{0,12}(</think>)?)?[a-zé<> ]{0,12}", cuts in prop::collection::vec(0usize..40, 0..6)) {
            let mut ends: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).chain([0, text.len()]).collect();
            ends.sort_unstable();
            let pieces: Vec<&str> = ends.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect();
            prop_assert_eq!(spoken(ProviderKind::Ollama, &pieces), spoken(ProviderKind::Ollama, &[&text]));
        }
    }
}
