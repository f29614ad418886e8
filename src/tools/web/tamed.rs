//! Makes of a page one that is laid out in a time and a space that its length tells. Pure.
//!
//! A parser repairs pages that are written wrong, and a page can be written so that this takes gigabytes or hours: formatting that
//! is left open comes back in every paragraph, and what cannot be closed lies in each other without end. So few kinds of elements
//! are let through, each is closed where it should be, and the rest becomes text or goes.

/// Elements inside each other. Laying out takes time with the square of it.
const MAX_DEPTH: usize = 48;
/// Tables inside each other, which take even more.
const MAX_TABLES: usize = 4;
/// Emphasis inside emphasis.
const MAX_MARKS: usize = 16;
/// Elements in all. The text of those that come after is kept.
const MAX_ELEMENTS: usize = 50_000;

/// The same text in elements that cost no more than they should.
pub(super) fn tamed(html: &str) -> String {
    let lower = html.to_ascii_lowercase();
    let mut tamer = Tamer { out: String::with_capacity(html.len()), open: Vec::new(), elements: 0, marks: Vec::new() };
    let mut at = 0;
    while let Some(tag) = html[at..].find('<').map(|found| at + found) {
        tamer.out.push_str(&html[at..tag]);
        at = tamer.take(html, &lower, tag);
    }
    tamer.out.push_str(&html[at..]);
    while let Some(name) = tamer.open.pop() {
        tamer.end(name);
    }
    tamer.out
}

struct Tamer {
    out: String,
    open: Vec<&'static str>,
    elements: usize,
    /// Emphasis that is open, with where its words begin.
    marks: Vec<(&'static str, usize)>,
}

impl Tamer {
    /// Does what stands at a `<`, and returns where to go on.
    fn take(&mut self, html: &str, lower: &str, at: usize) -> usize {
        let after = &lower[at + 1..];
        if after.starts_with("!--") {
            return end_of(lower, at + 4, "-->");
        }
        if after.starts_with(['!', '?']) {
            return end_of(lower, at, ">");
        }
        let (is_end, name_at) = if after.starts_with('/') { (true, at + 2) } else { (false, at + 1) };
        let name = name_at_start(&lower[name_at..]);
        if name.is_empty() {
            self.out.push_str("&lt;");
            return at + 1;
        }
        let tag = Tag::read(html, lower, name_at + name.len());
        if is_end {
            self.close(name);
        } else if SKIPPED.contains(&name) {
            let end = end_of(lower, tag.end, &format!("</{name}"));
            return if end < lower.len() { end_of(lower, end, ">") } else { end };
        } else {
            self.open(name, &tag);
        }
        tag.end
    }

    fn open(&mut self, name: &str, tag: &Tag<'_>) {
        if let Some(mark) = mark_of(name) {
            if self.marks.len() < MAX_MARKS {
                self.out.push_str(mark);
                self.marks.push((mark, self.out.len()));
            }
            return;
        }
        match name {
            "br" | "hr" if self.elements < MAX_ELEMENTS => {
                self.elements += 1;
                self.out.push_str(if name == "br" { "<br>" } else { "<hr>" });
            }
            "img" if !tag.alt.is_empty() => self.out.push_str(&format!(" [{}] ", escaped(tag.alt))),
            "a" if !tag.href.is_empty() => {
                self.close("a");
                self.begin("a", &format!(" href=\"{}\"", escaped(tag.href)));
            }
            _ => {
                if let Some(name) = block_named(name) {
                    self.make_way(name);
                    self.begin(name, "");
                }
            }
        }
    }

    fn begin(&mut self, name: &'static str, attribute: &str) {
        let tables = self.open.iter().filter(|open| **open == "table").count();
        let is_too_much = self.open.len() >= MAX_DEPTH || name == "table" && tables >= MAX_TABLES;
        if is_too_much || self.elements >= MAX_ELEMENTS {
            self.out.push(' ');
            return;
        }
        self.elements += 1;
        self.out.push_str(&format!("<{name}{attribute}>"));
        self.open.push(name);
    }

    fn close(&mut self, name: &str) {
        if let Some(mark) = mark_of(name) {
            return self.unmark(mark);
        }
        let name = if name == "a" { Some("a") } else { block_named(name) };
        let Some(name) = name else { return };
        let is_wall = |open: &str| WALLS.contains(&open) && !["table", "tr", "td", "th"].contains(&name);
        self.close_up_to(|open| open == name, is_wall);
    }

    /// Closes the innermost element that is meant, unless there is a wall before it.
    fn close_up_to(&mut self, is_meant: impl Fn(&str) -> bool, is_wall: impl Fn(&str) -> bool) {
        let Some(from_top) = self.open.iter().rev().position(|open| is_meant(open) || is_wall(open)) else { return };
        let at = self.open.len() - 1 - from_top;
        if is_meant(self.open[at]) {
            for name in self.open.split_off(at).into_iter().rev() {
                self.end(name);
            }
        }
    }

    /// Ends what need not be ended before this begins.
    fn make_way(&mut self, name: &str) {
        self.close_up_to(|open| open == "p", |open| open != "a");
        match name {
            "li" => self.close_up_to(|open| open == "li", |open| ["ul", "ol", "td", "th"].contains(&open)),
            "dt" | "dd" => self.close_up_to(|open| ["dt", "dd"].contains(&open), |open| ["dl", "td", "th"].contains(&open)),
            "tr" => self.close_up_to(|open| open == "tr", |open| open == "table"),
            "td" | "th" => self.close_up_to(|open| ["td", "th"].contains(&open), |open| ["tr", "table"].contains(&open)),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        self.out.push_str(&format!("</{name}>"));
    }

    /// Emphasis of nothing leaves no marks.
    fn unmark(&mut self, mark: &str) {
        let Some(found) = self.marks.iter().rposition(|(open, _)| *open == mark) else { return };
        let (_, begins) = self.marks.remove(found);
        if self.out[begins..].trim().is_empty() {
            self.out.truncate(begins - mark.len());
        } else {
            self.out.push_str(mark);
        }
    }
}

/// What is not for people to read, up to its end.
const SKIPPED: [&str; 11] =
    ["script", "style", "title", "textarea", "template", "svg", "math", "iframe", "noembed", "noframes", "xmp"];
/// What is inside of these closes nothing outside.
const WALLS: [&str; 3] = ["td", "th", "table"];
const BLOCKS: [&str; 19] =
    ["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "dl", "dt", "dd", "blockquote", "pre", "table", "tr", "td", "th"];
/// Blocks that are nothing but blocks.
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

/// The element that stands for this one, if it begins a line of its own.
fn block_named(name: &str) -> Option<&'static str> {
    let plain = PLAIN.contains(&name).then_some("div");
    plain.or_else(|| BLOCKS.into_iter().find(|block| *block == name))
}

fn mark_of(name: &str) -> Option<&'static str> {
    match name {
        "b" | "strong" => Some("**"),
        "i" | "em" => Some("*"),
        "code" => Some("`"),
        _ => None,
    }
}

fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('"', "&quot;")
}

/// Behind the next `what`, or the end of the page.
fn end_of(lower: &str, from: usize, what: &str) -> usize {
    let from = from.min(lower.len());
    lower[from..].find(what).map_or(lower.len(), |found| from + found + what.len())
}

fn name_at_start(text: &str) -> &str {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return "";
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(text.len());
    &text[..end]
}

/// What is in a tag behind its name.
struct Tag<'a> {
    href: &'a str,
    alt: &'a str,
    /// Behind its `>`.
    end: usize,
}

impl<'a> Tag<'a> {
    fn read(html: &'a str, lower: &str, from: usize) -> Self {
        let bytes = html.as_bytes();
        let mut tag = Tag { href: "", alt: "", end: html.len() };
        let skip = |at: usize, is_part: fn(u8) -> bool| {
            bytes[at..].iter().position(|byte| !is_part(*byte)).map_or(bytes.len(), |n| at + n)
        };
        let mut at = from;
        loop {
            at = skip(at, |byte| byte.is_ascii_whitespace() || byte == b'/');
            match bytes.get(at) {
                None => return tag,
                Some(b'>') => {
                    tag.end = at + 1;
                    return tag;
                }
                Some(_) => {}
            }
            // At least one, so that it goes on whatever stands here.
            let name_end = skip(at + 1, |byte| !byte.is_ascii_whitespace() && !b"/>=".contains(&byte));
            let name = &lower[floor(lower, at)..floor(lower, name_end)];
            at = skip(name_end, |byte| byte.is_ascii_whitespace());
            if bytes.get(at) != Some(&b'=') {
                continue;
            }
            at = skip(at + 1, |byte| byte.is_ascii_whitespace());
            let (begin, end) = match bytes.get(at) {
                Some(quote @ (b'"' | b'\'')) => {
                    let quote: fn(u8) -> bool = if *quote == b'"' { |byte| byte != b'"' } else { |byte| byte != b'\'' };
                    (at + 1, skip(at + 1, quote))
                }
                _ => (at, skip(at, |byte| !byte.is_ascii_whitespace() && byte != b'>')),
            };
            let value = &html[begin.min(end)..end];
            match name {
                "href" => tag.href = value,
                "alt" => tag.alt = value,
                _ => {}
            }
            at = if begin > at { (end + 1).min(bytes.len()) } else { end };
        }
    }
}

fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_left_open_is_closed_and_what_is_odd_goes() {
        let check = |html: &str, expected: &str| assert_eq!(tamed(html), expected, "{html}");
        check("<p>a<p class=x>b", "<p>a</p><p>b</p>");
        check("<ul><li>a<li>b</ul>c", "<ul><li>a</li><li>b</li></ul>c");
        check("<DIV><Span>a</span></DIV >", "<div>a</div>");
        check("<table><tr><td>a<td>b<tr><td>c</table>d", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>d");
        check("<div><table><td></div>a</table>b</div>", "<div><table><td>a</td></table>b</div>");
        check("a</div></p></li>b", "ab");
        check("<b>a</b> <i class=icon></i><em>c", "**a** *c");
        check("<a href='x?a=1&b=2' title=\"</a>\">y</a><a>z</a>", "<a href=\"x?a=1&b=2\">y</a>z");
        check("<a href=1>y<a href=2>z", "<a href=\"1\">y</a><a href=\"2\">z</a>");
        check("a<!-- <p> -->b<script>x<y</script>c<style>", "abc");
        check("1 < 2 <3 </ <", "1 &lt; 2 &lt;3 &lt;/ &lt;");
        check("<div title=\"a>b\" x>c</div><img alt='a \"<b>'>", "<div>c</div> [a &quot;&lt;b>] ");
        check("<p", "<p></p>");
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
            prop_assert!(deepest(&tamed(&html)) <= MAX_DEPTH);
        }
    }

    #[test]
    fn depth_and_number_are_bounded_and_no_word_is_lost() {
        for unit in
            ["<div>a", "<div></x>a", "<table><tr><td>a", "<div title=\"</div>\">a", "<div><table></div>a</table>", "<br>a"]
        {
            let tamed = tamed(&unit.repeat(60_000));
            assert!(deepest(&tamed) <= MAX_DEPTH, "{unit}");
            assert!(tamed.matches('<').count() <= 2 * MAX_ELEMENTS, "{unit}");
            assert_eq!(tamed.split(['<', '>']).step_by(2).map(|text| text.matches('a').count()).sum::<usize>(), 60_000, "{unit}");
        }
    }
}
