//! Reads HTML as text, start tags and end tags, without scripts, styles and other content that no
//! browser shows as text.

use std::borrow::Cow;

use html5gum::{StartTag, State, Token, Tokenizer};

/// A piece of a page, for a reader who needs two attributes. Names are in lower case and character
/// references are decoded.
pub(super) enum Piece<'a> {
    Text(Cow<'a, str>),
    Start {
        name: Cow<'a, str>,
        href: Cow<'a, str>,
        alt: Cow<'a, str>,
    },
    End(Cow<'a, str>),
}

/// Calls `each` with the pieces of a page, in their order.
pub(super) fn for_each(html: &str, mut each: impl FnMut(Piece<'_>)) {
    let mut tokens = Tokenizer::new(html);
    // The name of the element whose content is left out.
    let mut hidden: Option<Vec<u8>> = None;
    while let Some(Ok(token)) = tokens.next() {
        match token {
            Token::StartTag(tag) => {
                if let Some(state) = content_state(&tag, hidden.is_some()) {
                    tokens.set_state(state);
                }
                if hidden.is_none() {
                    if is_hidden(&tag) {
                        hidden = Some(tag.name.0);
                    } else {
                        each(start(&tag));
                    }
                }
            }
            Token::EndTag(tag) if hidden.as_ref() == Some(&tag.name.0) => hidden = None,
            Token::EndTag(tag) if hidden.is_none() => each(Piece::End(text(&tag.name))),
            Token::String(string) if hidden.is_none() => each(Piece::Text(text(&string))),
            _ => {}
        }
    }
}

fn start(tag: &StartTag<()>) -> Piece<'_> {
    let attribute = |name: &[u8]| {
        tag.attributes
            .get(name)
            .map_or(Cow::Borrowed(""), |value| text(value))
    };
    Piece::Start {
        name: text(&tag.name),
        href: attribute(b"href"),
        alt: attribute(b"alt"),
    }
}

/// The tokenizer's state for the content of elements without inner tags.
fn content_state(tag: &StartTag<()>, is_inside_hidden: bool) -> Option<State> {
    // SVG and MathML close an element in its start tag, HTML ignores such a slash.
    if is_inside_hidden && tag.self_closing {
        return None;
    }
    match tag.name.as_slice() {
        b"script" => Some(State::ScriptData),
        b"style" | b"iframe" | b"noembed" | b"noframes" | b"xmp" => Some(State::RawText),
        b"title" | b"textarea" => Some(State::RcData),
        _ => None,
    }
}

fn is_hidden(tag: &StartTag<()>) -> bool {
    match tag.name.as_slice() {
        b"template" => true,
        b"svg" | b"math" => !tag.self_closing,
        _ => content_state(tag, false).is_some(),
    }
}

/// The page was text before, so its pieces are text too.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
