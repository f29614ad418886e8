//! An answer, piece by piece. Each piece is counted first and kept then.

use std::collections::{HashSet, VecDeque};

use serde_json::{Value, json};

use super::bounds::{
    MAX_CALL_BYTES, MAX_NAME_BYTES, MAX_TEXT_BYTES, MAX_THOUGHT_BYTES, MOST_CALLS, within_bytes,
    within_count, within_values,
};
use super::json::Arguments;
use super::thinking::Spoken;
use super::thoughts::Thought;
use crate::config::ProviderKind;
use crate::models::{Cut, ModelError, ModelEvent, ToolCall, Usage};

/// Bytes of a thought besides its text, so that empty thoughts have an end too.
const THOUGHT_BYTES: usize = 128;

/// Tokens that a server may count. Larger numbers are nonsense, and would spoil sums.
const MOST_TOKENS: u64 = 1_000_000_000;

/// An answer in the making. Dialects add to the answer piece by piece.
pub(super) struct Answer {
    spoken: Spoken,
    /// Events still to be handed on.
    events: VecDeque<ModelEvent>,
    calls: Vec<Draft>,
    thoughts: Vec<Thought>,
    pub(super) usage: Usage,
    pub(super) stop: Option<Stop>,
    /// The server said so; nothing follows.
    pub(super) is_complete: bool,
    text_bytes: usize,
    thought_bytes: usize,
    call_bytes: usize,
}

/// The reason of a model to stop, as far as callers act on the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Everything was said, or tools are wanted.
    Done,
    MaxTokens,
    WindowFull,
    Filtered,
}

impl Stop {
    /// By the word of any provider. Unknown words are new names for a normal end.
    pub(super) fn of(reason: &str) -> Self {
        match reason {
            "length" | "max_tokens" | "max_output_tokens" | "MAX_TOKENS" => Stop::MaxTokens,
            "model_context_window_exceeded" | "model_length" => Stop::WindowFull,
            "content_filter" | "refusal" => Stop::Filtered,
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "LANGUAGE" => {
                Stop::Filtered
            }
            "IMAGE_SAFETY" | "IMAGE_PROHIBITED_CONTENT" | "IMAGE_RECITATION" => Stop::Filtered,
            _ => Stop::Done,
        }
    }
}

/// A tool call that is being written.
#[derive(Default)]
struct Draft {
    /// The server's number for the call, if calls have numbers. Any number is only a name here.
    number: Option<u64>,
    id: String,
    name: String,
    pieces: String,
    whole: String,
}

/// The place of a call in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(usize);

impl Answer {
    pub(super) fn new(kind: ProviderKind) -> Self {
        Answer {
            spoken: Spoken::new(kind),
            events: VecDeque::new(),
            calls: Vec::new(),
            thoughts: Vec::new(),
            usage: Usage::default(),
            stop: None,
            is_complete: false,
            text_bytes: 0,
            thought_bytes: 0,
            call_bytes: 0,
        }
    }

    pub(super) fn next_event(&mut self) -> Option<ModelEvent> {
        self.events.pop_front()
    }

    pub(super) fn has_text(&self) -> bool {
        self.text_bytes > 0
    }

    pub(super) fn say(&mut self, piece: &str) -> Result<(), ModelError> {
        if piece.is_empty() {
            return Ok(());
        }
        match self.spoken.take(piece.to_owned()) {
            Some(text) => self.show(text),
            None => self.think(piece),
        }
    }

    fn show(&mut self, text: String) -> Result<(), ModelError> {
        self.text_bytes += text.len();
        within_bytes(self.text_bytes, MAX_TEXT_BYTES, "of text")?;
        self.events.push_back(ModelEvent::Text(text));
        Ok(())
    }

    /// A thought of which only the size matters.
    pub(super) fn think(&mut self, piece: &str) -> Result<(), ModelError> {
        if piece.is_empty() {
            return Ok(());
        }
        self.work();
        self.count_thought(piece.len())
    }

    fn count_thought(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.thought_bytes += bytes;
        within_bytes(self.thought_bytes, MAX_THOUGHT_BYTES, "of thoughts")
    }

    /// A thought that goes back to the server with the results of tools.
    pub(super) fn begin_thought(&mut self, thought: Thought) -> Result<(), ModelError> {
        self.work();
        self.count_thought(THOUGHT_BYTES + thought.bytes())?;
        self.thoughts.push(thought);
        Ok(())
    }

    /// More of the last thought, and of its signature.
    pub(super) fn add_to_thought(
        &mut self,
        text: &str,
        more_signature: &str,
    ) -> Result<(), ModelError> {
        self.work();
        self.count_thought(text.len() + more_signature.len())?;
        if let Some(Thought::Thinking {
            thinking,
            signature,
        }) = self.thoughts.last_mut()
        {
            thinking.push_str(text);
            signature.push_str(more_signature);
        }
        Ok(())
    }

    fn work(&mut self) {
        if self.events.back() != Some(&ModelEvent::Working) {
            self.events.push_back(ModelEvent::Working);
        }
    }

    pub(super) fn begin_call(
        &mut self,
        number: Option<u64>,
        id: &str,
        name: &str,
    ) -> Result<Place, ModelError> {
        within_count(self.calls.len() + 1, MOST_CALLS, "tool calls")?;
        self.calls.push(Draft {
            number,
            ..Draft::default()
        });
        let place = Place(self.calls.len() - 1);
        self.name_call(place, id, name)?;
        Ok(place)
    }

    /// Sets the id and the name, unless empty. Servers may repeat both with each piece.
    pub(super) fn name_call(
        &mut self,
        place: Place,
        id: &str,
        name: &str,
    ) -> Result<(), ModelError> {
        within_bytes(name.len(), MAX_NAME_BYTES, "for a tool's name")?;
        let draft = &mut self.calls[place.0];
        let before = draft.id.len() + draft.name.len();
        if !id.is_empty() {
            id.clone_into(&mut draft.id);
        }
        if !name.is_empty() {
            name.clone_into(&mut draft.name);
        }
        let now = draft.id.len() + draft.name.len();
        self.call_bytes -= before;
        self.count_call(now)
    }

    pub(super) fn add_arguments(
        &mut self,
        place: Place,
        arguments: Option<Arguments<'_>>,
    ) -> Result<(), ModelError> {
        match arguments {
            Some(Arguments::Piece(piece)) => {
                self.count_call(piece.len())?;
                self.calls[place.0].pieces.push_str(&piece);
            }
            Some(Arguments::Whole(whole)) => {
                self.count_call(whole.len())?;
                whole.clone_into(&mut self.calls[place.0].whole);
            }
            None => {}
        }
        Ok(())
    }

    /// All arguments of a call at its end, in place of the pieces.
    pub(super) fn set_arguments(
        &mut self,
        place: Place,
        arguments: &str,
    ) -> Result<(), ModelError> {
        let before = std::mem::take(&mut self.calls[place.0].pieces);
        self.call_bytes -= before.len();
        self.add_arguments(place, Some(Arguments::Piece(arguments.to_owned())))
    }

    fn count_call(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.work();
        self.call_bytes += bytes;
        within_bytes(self.call_bytes, MAX_CALL_BYTES, "for tools")
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The newest call with this number.
    pub(super) fn call_with_number(&self, number: u64) -> Option<Place> {
        self.calls
            .iter()
            .rposition(|call| call.number == Some(number))
            .map(Place)
    }

    pub(super) fn last_call(&self) -> Option<Place> {
        self.calls.len().checked_sub(1).map(Place)
    }

    pub(super) fn id_of(&self, place: Place) -> &str {
        &self.calls[place.0].id
    }

    /// Text still held: a short answer could have been the beginning of a thought.
    pub(super) fn tell_rest(&mut self) {
        if let Some(text) = self.spoken.rest() {
            self.events.push_back(ModelEvent::Text(text));
        }
    }

    /// The end of a complete answer, and the thoughts before its calls.
    pub(super) fn finish(
        &mut self,
        max_tokens: Option<u32>,
    ) -> Result<(ModelEvent, Vec<Thought>), ModelError> {
        let usage = sane(self.usage);
        let counted = Some(usage.output_tokens).filter(|tokens| *tokens > 0);
        let cut = match self.stop {
            Some(Stop::Filtered) => {
                let why = "the answer was stopped by the provider's content filter";
                return Err(ModelError::Refused(why.to_owned()));
            }
            Some(Stop::MaxTokens) => Some(Cut::AtTokens(max_tokens.map(u64::from).or(counted))),
            Some(Stop::WindowFull) => Some(Cut::WindowFull),
            Some(Stop::Done) | None => None,
        };
        let tool_calls = tool_calls(std::mem::take(&mut self.calls), cut.is_some());
        Ok((
            ModelEvent::Done {
                tool_calls,
                usage,
                cut,
            },
            std::mem::take(&mut self.thoughts),
        ))
    }
}

fn sane(
    Usage {
        input_tokens,
        output_tokens,
        cached_tokens,
    }: Usage,
) -> Usage {
    Usage {
        input_tokens: input_tokens.min(MOST_TOKENS),
        output_tokens: output_tokens.min(MOST_TOKENS),
        cached_tokens: cached_tokens.min(MOST_TOKENS),
    }
}

fn tool_calls(drafts: Vec<Draft>, is_cut: bool) -> Vec<ToolCall> {
    let last = drafts.len().saturating_sub(1);
    let mut ids = HashSet::new();
    let call = |(number, draft): (usize, Draft)| {
        let may_be_cut = is_cut && number == last;
        let arguments = if draft.pieces.is_empty() {
            &draft.whole
        } else {
            &draft.pieces
        };
        let arguments = read_arguments(arguments.trim(), may_be_cut);
        ToolCall {
            id: distinct(draft.id, &mut ids),
            name: draft.name,
            arguments,
        }
    };
    drafts.into_iter().enumerate().map(call).collect()
}

/// Results name their call by its id, so two calls never share an id.
fn distinct(id: String, taken: &mut HashSet<String>) -> String {
    let is_good = !id.is_empty() && !taken.contains(&id);
    let id = if is_good {
        id
    } else {
        format!("call_{}", uuid::Uuid::new_v4().simple())
    };
    taken.insert(id.clone());
    id
}

/// The last call of an answer that was cut off may lack a part of its arguments, or all of them. A
/// part of an object is never an object, and stays text.
fn read_arguments(text: &str, may_be_cut: bool) -> Value {
    match text {
        "" if !may_be_cut => json!({}),
        text if within_values(text).is_err() => Value::String(text.to_owned()),
        text => match serde_json::from_str(text) {
            Ok(Value::Null) => json!({}),
            Ok(arguments) => arguments,
            Err(_) => Value::String(text.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Answer {
        Answer::new(ProviderKind::Anthropic)
    }

    fn what(result: Result<(), ModelError>) -> String {
        result.expect_err("more than the most").to_string()
    }

    #[test]
    fn text_thoughts_and_calls_have_an_end() {
        let mut answer = answer();
        let half = "x".repeat(MAX_TEXT_BYTES / 2);
        assert_eq!(
            [(); 3].map(|()| answer.say(&half).is_ok()),
            [true, true, false]
        );
        let half = "x".repeat(MAX_THOUGHT_BYTES / 2);
        assert_eq!(
            [(); 3].map(|()| answer.think(&half).is_ok()),
            [true, true, false]
        );
        let taken = (0..100)
            .take_while(|number| answer.begin_call(Some(*number), "", "now").is_ok())
            .count();
        assert_eq!(taken, MOST_CALLS);
    }

    #[test]
    fn kept_thoughts_have_an_end_also_when_they_are_empty() {
        let mut answer = answer();
        let empty = || Thought::Thinking {
            thinking: String::new(),
            signature: String::new(),
        };
        let taken = (0..1_000_000)
            .take_while(|_| answer.begin_thought(empty()).is_ok())
            .count();
        assert_eq!(taken, MAX_THOUGHT_BYTES / THOUGHT_BYTES);
    }

    #[test]
    fn calls_are_counted_together_with_their_names() {
        let mut answer = answer();
        let piece = |bytes: usize| Some(Arguments::Piece("x".repeat(bytes)));
        let one = answer
            .begin_call(Some(4_000_000_000), "a", "b")
            .expect("any number is a name");
        answer
            .add_arguments(one, piece(MAX_CALL_BYTES - 3))
            .expect("within the limit");
        answer
            .set_arguments(one, &"y".repeat(MAX_CALL_BYTES - 3))
            .expect("instead of the pieces");
        let other = answer.begin_call(None, "", "").expect("a second");
        assert_eq!(
            what(answer.add_arguments(other, piece(2))),
            "the model server sent more than 512 KB for tools; it was stopped"
        );
        let long = "n".repeat(MAX_NAME_BYTES + 1);
        assert_eq!(
            what(self::answer().begin_call(None, "", &long).map(|_| ())),
            "the model server sent more than 1 KB for a tool's name; it was stopped"
        );
    }

    #[test]
    fn arguments_are_objects_where_they_can_be() {
        let check = |text: &str, may_be_cut: bool, expected: Value| {
            assert_eq!(read_arguments(text, may_be_cut), expected, "{text}");
        };
        check(r#"{"a": 1}"#, false, json!({"a": 1}));
        check("", false, json!({}));
        check("null", false, json!({}));
        check("", true, json!(""));
        check(r#"{"a": "#, true, json!(r#"{"a": "#));
        check("not json", false, json!("not json"));
        let many = format!("[{}0]", "0,".repeat(100_000));
        check(&many, false, json!(many));
    }

    #[test]
    fn calls_get_distinct_ids() {
        let mut answer = answer();
        for id in ["a", "a", "", ""] {
            answer.begin_call(None, id, "now").expect("a call");
        }
        let calls = tool_calls(answer.calls, false);
        let ids: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!((calls[0].id.as_str(), ids.len()), ("a", 4));
        assert!(!ids.contains(""));
    }
}
