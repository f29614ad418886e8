//! Keeps link definitions (`[1]: https://…`) without a visible link from vanishing.

use std::collections::HashSet;
use std::ops::Range;

use pulldown_cmark::RefDefs;

/// The definitions of a text. The parser gives no events for them, so they are found in skipped
/// source.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// Address and place of each, by place. Only the first of each label is known.
    known: Vec<(String, Range<usize>)>,
    used_urls: HashSet<String>,
    /// Source without events, apart from marks of quotes.
    skipped: Vec<Range<usize>>,
}

impl Definitions {
    pub(super) fn new(definitions: &RefDefs) -> Self {
        let mut known: Vec<_> = definitions
            .iter()
            .map(|(_, link)| (link.dest.to_string(), link.span.clone()))
            .collect();
        known.sort_by_key(|(_, span)| span.start);
        Definitions {
            known,
            ..Default::default()
        }
    }

    pub(super) fn use_url(&mut self, url: &str) {
        if !self.known.is_empty() {
            self.used_urls.insert(url.to_owned());
        }
    }

    pub(super) fn skip(&mut self, source: &str, range: Range<usize>) {
        if !self.known.is_empty() && !without_markers(&source[range.clone()]).is_empty() {
            self.skipped.push(range);
        }
    }

    /// The skipped lines, without the definitions of visible links.
    pub(super) fn unused<'a>(&self, source: &'a str) -> Vec<&'a str> {
        let mut used = self
            .known
            .iter()
            .filter(|(url, _)| self.used_urls.contains(url))
            .map(|(_, span)| span)
            .peekable();
        let mut pieces = Vec::new();
        for range in &self.skipped {
            let mut start = range.start;
            while let Some(span) = used.next_if(|span| span.start < range.end) {
                pieces.push(source.get(start..span.start).unwrap_or_default());
                start = start.max(span.end);
            }
            pieces.push(source.get(start..range.end).unwrap_or_default());
        }
        pieces
            .into_iter()
            .flat_map(str::lines)
            .map(without_markers)
            .filter(|line| !line.is_empty())
            .collect()
    }
}

fn without_markers(source: &str) -> &str {
    source.trim_matches(|c: char| c.is_whitespace() || c == '>')
}
