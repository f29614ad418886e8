//! Rewrites HTML so that laying it out takes time and memory linear in its length. Pure.
//!
//! A parser repairs wrong pages, and repairing can take gigabytes or hours: formatting left open
//! comes back in every paragraph, and elements without an end are nested ever deeper. So only a few
//! kinds of elements pass, each is closed in its place, and the others leave their text or nothing.

use super::tokens::{Piece, for_each};

/// Elements inside each other. Laying out takes time with the square of the depth.
const MAX_DEPTH: usize = 48;
/// Tables inside each other. They take even more time.
const MAX_TABLES: usize = 4;
/// Emphasis inside emphasis.
const MAX_EMPHASES: usize = 16;
/// Elements in all. Later elements leave their text only.
const MAX_ELEMENTS: usize = 50_000;

/// The same text in harmless elements.
pub(super) fn simplified(html: &str) -> String {
    let mut writer = Writer {
        out: String::with_capacity(html.len()),
        ..Writer::default()
    };
    for_each(html, |piece| match piece {
        Piece::Text(text) => writer.out.push_str(&escaped(&text)),
        Piece::Start { name, href, alt } => writer.open(&name, &href, &alt),
        Piece::End(name) => writer.close(&name),
    });
    writer.finish()
}

/// A page under construction.
#[derive(Default)]
struct Writer {
    out: String,
    open: Vec<&'static str>,
    elements: usize,
    /// Open emphasis, with the place where its text begins.
    emphases: Vec<(&'static str, usize)>,
}

impl Writer {
    fn open(&mut self, name: &str, href: &str, alt: &str) {
        if let Some(mark) = emphasis_mark(name) {
            return self.open_emphasis(mark);
        }
        match name {
            "br" if self.may_add() => self.out.push_str("<br>"),
            "hr" if self.may_add() => self.out.push_str("<hr>"),
            "img" if !alt.is_empty() => self.out.push_str(&format!(" [{}] ", escaped(alt))),
            "a" if !href.is_empty() => {
                self.close("a");
                self.begin("a", &format!(" href=\"{}\"", escaped(href)));
            }
            _ => {
                if let Some(name) = block_named(name) {
                    self.make_way(name);
                    self.begin(name, "");
                }
            }
        }
    }

    /// Counts an element, while there are not too many.
    fn may_add(&mut self) -> bool {
        let may = self.elements < MAX_ELEMENTS;
        self.elements += usize::from(may);
        may
    }

    fn begin(&mut self, name: &'static str, attribute: &str) {
        let tables = self.open.iter().filter(|open| **open == "table").count();
        let is_too_deep = self.open.len() >= MAX_DEPTH || name == "table" && tables >= MAX_TABLES;
        if is_too_deep || !self.may_add() {
            self.out.push(' ');
            return;
        }
        self.out.push_str(&format!("<{name}{attribute}>"));
        self.open.push(name);
    }

    fn close(&mut self, name: &str) {
        if let Some(mark) = emphasis_mark(name) {
            return self.close_emphasis(mark);
        }
        let name = if name == "a" {
            Some("a")
        } else {
            block_named(name)
        };
        let Some(name) = name else { return };
        let is_wall =
            |open: &str| WALLS.contains(&open) && !["table", "tr", "td", "th"].contains(&name);
        self.close_up_to(|open| open == name, is_wall);
    }

    /// Closes up to the innermost meant element, unless a wall is in between.
    fn close_up_to(&mut self, is_meant: impl Fn(&str) -> bool, is_wall: impl Fn(&str) -> bool) {
        let Some(from_top) = self
            .open
            .iter()
            .rev()
            .position(|open| is_meant(open) || is_wall(open))
        else {
            return;
        };
        let at = self.open.len() - 1 - from_top;
        if is_meant(self.open[at]) {
            for name in self.open.split_off(at).into_iter().rev() {
                self.end(name);
            }
        }
    }

    /// Closes elements whose end tag may be missing before this element.
    fn make_way(&mut self, name: &str) {
        self.close_up_to(|open| open == "p", |open| open != "a");
        match name {
            "li" => self.close_up_to(
                |open| open == "li",
                |open| ["ul", "ol", "td", "th"].contains(&open),
            ),
            "dt" | "dd" => self.close_up_to(
                |open| ["dt", "dd"].contains(&open),
                |open| ["dl", "td", "th"].contains(&open),
            ),
            "tr" => self.close_up_to(|open| open == "tr", |open| open == "table"),
            "td" | "th" => self.close_up_to(
                |open| ["td", "th"].contains(&open),
                |open| ["tr", "table"].contains(&open),
            ),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        self.out.push_str(&format!("</{name}>"));
    }

    fn open_emphasis(&mut self, mark: &'static str) {
        if self.emphases.len() < MAX_EMPHASES {
            self.out.push_str(mark);
            self.emphases.push((mark, self.out.len()));
        }
    }

    /// Emphasis of nothing leaves no marks.
    fn close_emphasis(&mut self, mark: &str) {
        let Some(found) = self.emphases.iter().rposition(|(open, _)| *open == mark) else {
            return;
        };
        let (_, begins) = self.emphases.remove(found);
        if self.out[begins..].trim().is_empty() {
            self.out.truncate(begins - mark.len());
        } else {
            self.out.push_str(mark);
        }
    }

    fn finish(mut self) -> String {
        while let Some(name) = self.open.pop() {
            self.end(name);
        }
        self.out
    }
}

/// End tags inside these elements close nothing outside.
const WALLS: [&str; 3] = ["td", "th", "table"];
const BLOCKS: [&str; 19] = [
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "dl",
    "dt",
    "dd",
    "blockquote",
    "pre",
    "table",
    "tr",
    "td",
    "th",
];
/// Blocks without a meaning of their own: all become `div`.
const PLAIN: [&str; 18] = [
    "div",
    "section",
    "article",
    "header",
    "footer",
    "main",
    "nav",
    "aside",
    "figure",
    "figcaption",
    "form",
    "fieldset",
    "address",
    "details",
    "summary",
    "center",
    "dialog",
    "menu",
];

/// The element to write for a block; none for elements within a line.
fn block_named(name: &str) -> Option<&'static str> {
    let plain = PLAIN.contains(&name).then_some("div");
    plain.or_else(|| BLOCKS.into_iter().find(|block| *block == name))
}

fn emphasis_mark(name: &str) -> Option<&'static str> {
    match name {
        "b" | "strong" => Some("**"),
        "i" | "em" => Some("*"),
        "code" => Some("`"),
        _ => None,
    }
}

/// Text for the page or for an attribute, with character references in place of special characters.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_left_open_is_closed_and_what_is_odd_goes() {
        let check = |html: &str, expected: &str| assert_eq!(simplified(html), expected, "{html}");
        check("<p>a<p class=x>b", "<p>a</p><p>b</p>");
        check("<ul><li>a<li>b</ul>c", "<ul><li>a</li><li>b</li></ul>c");
        check("<DIV><Span>a</span></DIV >", "<div>a</div>");
        check(
            "<table><tr><td>a<td>b<tr><td>c</table>d",
            "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>d",
        );
        check(
            "<div><table><td></div>a</table>b</div>",
            "<div><table><td>a</td></table>b</div>",
        );
        check("a</div></p></li>b", "ab");
        check("<b>a</b> <i class=icon></i><em>c", "**a** *c");
        check(
            "<a href='x?a=1&b=2' title=\"</a>\">y</a><a>z</a>",
            "<a href=\"x?a=1&amp;b=2\">y</a>z",
        );
        check(
            "<a href=1>y<a href=2>z",
            "<a href=\"1\">y</a><a href=\"2\">z</a>",
        );
        check("a<!-- <p> -->b<script>x<y</script>c<style>", "abc");
        check("1 < 2 <3 & <", "1 &lt; 2 &lt;3 &amp; &lt;");
        check("a &lt;b&gt; &amp;lt; &eacute;", "a &lt;b> &amp;lt; é");
        check("a<svg><p>b</p></svg>c<svg/>d<title/>e</title>f", "acdf");
        check(
            "a<svg><title/><style>x<y</svg></style></svg>b<template><script>\"</template>\"</script></template>c",
            "abc",
        );
        check(
            "a<script>\"<!--\"</script>b<STYLE><p></Style >c<noscript><p>d</noscript>",
            "abc<p>d</p>",
        );
        check(
            "<div title=\"a>b\" x>c</div><img alt='a \"<b>'>",
            "<div>c</div> [a &quot;&lt;b>] ",
        );
        check("a<p", "a");
        check("<!--", "");
    }

    fn deepest(html: &str) -> usize {
        let (mut depth, mut deepest) = (0_usize, 0);
        for tag in html.split('<').skip(1) {
            match tag.starts_with('/') {
                true => depth -= 1,
                false if tag.starts_with("br>") || tag.starts_with("hr>") => {}
                false => depth += 1,
            }
            deepest = deepest.max(depth);
        }
        assert_eq!(depth, 0, "all is closed");
        deepest
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_closed_and_flat(
            html in "(<(/?(p|div|b|a href=1|ul|li|table|tr|td|object|svg|x)|!--|[a-z =\"'/é]{0,4})>?|[a-zé\"'> -]){0,80}",
        ) {
            prop_assert!(deepest(&simplified(&html)) <= MAX_DEPTH);
        }
    }

    #[test]
    fn depth_and_number_are_bounded_and_no_word_is_lost() {
        for unit in [
            "<div>a",
            "<div></x>a",
            "<table><tr><td>a",
            "<div title=\"</div>\">a",
            "<div><table></div>a</table>",
            "<br>a",
        ] {
            let page = simplified(&unit.repeat(60_000));
            assert!(deepest(&page) <= MAX_DEPTH, "{unit}");
            assert!(page.matches('<').count() <= 2 * MAX_ELEMENTS, "{unit}");
            assert_eq!(
                page.split(['<', '>'])
                    .step_by(2)
                    .map(|text| text.matches('a').count())
                    .sum::<usize>(),
                60_000,
                "{unit}"
            );
        }
    }

    /// A tokenizer that compares each attribute with all others would take hours.
    #[test]
    fn many_attributes_cost_no_more_than_their_length() {
        let attributes: String = (0..400_000).map(|n| format!(" a{n}")).collect();
        assert_eq!(
            simplified(&format!("<a{attributes} href=x>y")),
            "<a href=\"x\">y</a>"
        );
    }
}
