//! Places in a text: starts and ends of lines, comments above them, replacements.

use std::ops::Range;

pub(super) fn line_start(text: &str, byte: usize) -> usize {
    text[..byte].rfind('\n').map_or(0, |index| index + 1)
}

/// The start of the next line.
pub(super) fn line_end(text: &str, byte: usize) -> usize {
    text[byte..]
        .find('\n')
        .map_or(text.len(), |index| byte + index + 1)
}

/// The start of the comment lines directly above a line.
pub(super) fn with_comments(text: &str, mut start: usize) -> usize {
    while start > 0 {
        let above = line_start(text, start - 1);
        if !text[above..start].trim_start().starts_with('#') {
            break;
        }
        start = above;
    }
    start
}

/// The text with a line end. Without a line end, the last line would swallow the next.
pub(super) fn whole_lines(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text.to_owned()
    } else {
        format!("{text}\n")
    }
}

/// The text with other words in some places.
pub(super) fn replaced(text: &str, mut changes: Vec<(Range<usize>, String)>) -> String {
    changes.sort_by_key(|(range, _)| range.start);
    let (mut done, mut at) = (String::new(), 0);
    for (range, new) in changes {
        // Two ranges may overlap, such as the cuts of neighbours in a list.
        done.push_str(text.get(at..range.start).unwrap_or_default());
        done.push_str(&new);
        at = at.max(range.end);
    }
    done + &text[at..]
}
