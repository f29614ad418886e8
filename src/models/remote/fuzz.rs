//! Answers of model servers as functions of any bytes, for `src/fuzzing.rs`.

use super::bounds::{MAX_CALL_BYTES, MAX_TEXT_BYTES};
use super::classify;
use super::reading::Reading;
use crate::config::ProviderKind;
use crate::models::{ModelError, ModelEvent};

const KINDS: [ProviderKind; 5] = [
    ProviderKind::OpenAi,
    ProviderKind::OpenAiResponses,
    ProviderKind::Anthropic,
    ProviderKind::Gemini,
    ProviderKind::Ollama,
];

/// The first byte chooses the dialect. The rest comes whole, and then in pieces of seven bytes: both
/// must be the same answer.
pub(crate) fn stream(data: &[u8]) {
    let Some((first, body)) = data.split_first() else {
        return;
    };
    let kind = KINDS[usize::from(*first) % KINDS.len()];
    let whole = read(kind, std::iter::once(body));
    let pieces = read(kind, body.chunks(7));
    if let (Ok(whole), Ok(pieces)) = (&whole, &pieces) {
        assert_eq!(whole, pieces, "the cuts of the network change the answer");
    }
    assert_eq!(whole.is_ok(), pieces.is_ok(), "{whole:?} {pieces:?}");
    if let Ok(text) = std::str::from_utf8(body) {
        drop(classify::of_error_event(text));
    }
}

/// The text of the answer and the number of its calls.
fn read<'a>(
    kind: ProviderKind,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Result<(String, usize), ModelError> {
    let mut reading = Reading::new(kind);
    for piece in pieces {
        reading.take(piece)?;
        if reading.is_complete() {
            break;
        }
    }
    if !reading.is_complete() {
        reading.take_end()?;
    }
    reading.tell_rest();
    let mut text = String::new();
    while let Some(event) = reading.next_event() {
        if let ModelEvent::Text(piece) = event {
            text.push_str(&piece);
        }
    }
    let (end, _) = reading.finish(None)?;
    assert!(text.len() <= MAX_TEXT_BYTES, "{} bytes", text.len());
    let ModelEvent::Done { tool_calls, .. } = end else {
        return Ok((text, 0));
    };
    let arguments: usize = tool_calls
        .iter()
        .map(|call| call.arguments.to_string().len())
        .sum();
    // Written again, a value may take a few times the bytes it came in.
    assert!(arguments <= 8 * MAX_CALL_BYTES, "{arguments} bytes");
    Ok((text, tool_calls.len()))
}
