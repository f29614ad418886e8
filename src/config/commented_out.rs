//! Keys below a header that is commented out: `# [telegram]` above `token = …`. Such keys count for
//! the section before, which does not know them.

use super::schema::{PLACES, Shape};
use super::{Fault, Problem};

/// Tells the commented header in the place of a guess about the key.
pub(super) fn explain(source: &str, problems: &mut [Problem]) {
    for problem in problems {
        // A key that was meant for the section of the comment may be there already.
        let is_second = problem.message.ends_with("is set twice");
        if problem.fault != Fault::UnknownKey && !is_second {
            continue;
        }
        if let Some((line, header)) = header_above(source, problem.span.start) {
            let key = source.get(problem.span.clone()).unwrap_or_default();
            let Some(shape) = shape_of(header) else {
                continue;
            };
            if shape.key(key).is_none() {
                continue;
            }
            problem.label = label(line, header);
            problem.help = Some(advice(line, header));
        }
    }
}

pub(super) fn label(line: usize, header: &str) -> String {
    format!("its header `{header}` in line {line} is commented out")
}

pub(super) fn advice(line: usize, header: &str) -> String {
    format!(
        "take the `#` off line {line}, so that it is `{header}`; or put a `#` before this line too"
    )
}

/// The nearest header above that is commented out, with its line, unless a live header is nearer.
pub(super) fn header_above(source: &str, at: usize) -> Option<(usize, &str)> {
    let above = source.get(..at)?;
    let mut lines: Vec<(usize, &str)> = (1..).zip(above.lines()).collect();
    // The text in front of the key, in its own line.
    if !above.ends_with('\n') {
        lines.pop();
    }
    for (number, line) in lines.into_iter().rev() {
        let line = line.trim();
        if line.starts_with('[') {
            return None;
        }
        let header = line.trim_start_matches('#').trim();
        if line.starts_with('#') && is_header(header) {
            return Some((number, header));
        }
    }
    None
}

fn is_header(text: &str) -> bool {
    let inside = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    inside.is_some_and(|inside| {
        let name = inside.trim_start_matches('[').trim_end_matches(']');
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '"'))
    })
}

/// The keys that a section knows, by its header.
fn shape_of(header: &str) -> Option<&'static Shape> {
    let name = header.trim_matches(['[', ']']);
    let names: Vec<&str> = name.split('.').collect();
    let fits = |place: &str| {
        let parts: Vec<&str> = place.split('.').collect();
        parts.len() == names.len()
            && parts
                .iter()
                .zip(&names)
                .all(|(part, name)| *part == "*" || part == name)
    };
    let mut places = PLACES.iter();
    places
        .find(|(place, _)| fits(place))
        .map(|(_, shape)| *shape)
}
