//! Markdown of agents as HTML that does no harm: text is escaped, raw HTML is shown as text, and a
//! link leads to a web page or to nothing.

use std::fmt::Write;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Longer texts are shown without markup.
const MOST_BYTES: usize = 200_000;

pub(crate) fn html(markdown: &str) -> String {
    if markdown.len() > MOST_BYTES {
        return format!("<pre>{}</pre>", escaped(markdown));
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut page = Page::default();
    for event in Parser::new_ext(markdown, options) {
        page.take(event);
    }
    page.html
}

pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// The address of a link, if it leads to a page or to a mailbox.
pub(super) fn safe_href(address: &str) -> Option<&str> {
    let (scheme, _) = address.split_once(':')?;
    let is_known = ["http", "https", "mailto"]
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known));
    is_known.then_some(address)
}

#[derive(Default)]
struct Page {
    html: String,
    /// Whether each open link is one.
    links: Vec<bool>,
    is_head: bool,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.open(&tag),
            Event::End(tag) => self.close(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.html.push_str(&escaped(&text));
            }
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.put(format_args!("<code>{}</code>", escaped(&text)));
            }
            // People break lines where they mean it.
            Event::SoftBreak | Event::HardBreak => self.html.push_str("<br>"),
            Event::Rule => self.html.push_str("<hr>"),
            Event::TaskListMarker(is_done) => {
                self.html.push_str(if is_done { "☑ " } else { "☐ " });
            }
            Event::FootnoteReference(name) => {
                self.put(format_args!("<sup>{}</sup>", escaped(&name)));
            }
        }
    }

    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.html.write_fmt(text);
    }

    fn open(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Paragraph => self.html.push_str("<p>"),
            Tag::Heading { level, .. } => self.put(format_args!("<h{}>", heading(*level))),
            Tag::BlockQuote(_) => self.html.push_str("<blockquote>"),
            Tag::CodeBlock(kind) => {
                self.html.push_str("<pre><code");
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.put(format_args!(" data-language=\"{}\"", escaped(language)));
                }
                self.html.push('>');
            }
            Tag::List(Some(first)) => self.put(format_args!("<ol start=\"{first}\">")),
            Tag::List(None) => self.html.push_str("<ul>"),
            Tag::Item => self.html.push_str("<li>"),
            Tag::Table(_) => self.html.push_str("<div class=\"scroll-x\"><table>"),
            Tag::TableHead => {
                self.is_head = true;
                self.html.push_str("<thead><tr>");
            }
            Tag::TableRow => self.html.push_str("<tr>"),
            Tag::TableCell => self
                .html
                .push_str(if self.is_head { "<th>" } else { "<td>" }),
            Tag::Emphasis => self.html.push_str("<em>"),
            Tag::Strong => self.html.push_str("<strong>"),
            Tag::Strikethrough => self.html.push_str("<del>"),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                let href = safe_href(dest_url).map(escaped);
                if let Some(href) = &href {
                    self.put(format_args!(
                        "<a href=\"{href}\" target=\"_blank\" rel=\"noopener noreferrer\">"
                    ));
                }
                self.links.push(href.is_some());
            }
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.html.push_str("</p>"),
            TagEnd::Heading(level) => self.put(format_args!("</h{}>", heading(level))),
            TagEnd::BlockQuote(_) => self.html.push_str("</blockquote>"),
            TagEnd::CodeBlock => self.html.push_str("</code></pre>"),
            TagEnd::List(true) => self.html.push_str("</ol>"),
            TagEnd::List(false) => self.html.push_str("</ul>"),
            TagEnd::Item => self.html.push_str("</li>"),
            TagEnd::Table => self.html.push_str("</tbody></table></div>"),
            TagEnd::TableHead => {
                self.is_head = false;
                self.html.push_str("</tr></thead><tbody>");
            }
            TagEnd::TableRow => self.html.push_str("</tr>"),
            TagEnd::TableCell => {
                self.html
                    .push_str(if self.is_head { "</th>" } else { "</td>" });
            }
            TagEnd::Emphasis => self.html.push_str("</em>"),
            TagEnd::Strong => self.html.push_str("</strong>"),
            TagEnd::Strikethrough => self.html.push_str("</del>"),
            TagEnd::Link | TagEnd::Image => {
                let is_open = self.links.pop().unwrap_or_default();
                self.html.push_str(if is_open { "</a>" } else { "" });
            }
            _ => {}
        }
    }
}

/// The page has its own first and second heading.
fn heading(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 | HeadingLevel::H2 => 3,
        HeadingLevel::H3 => 4,
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_agents_do_no_harm() {
        for evil in [
            "<script>alert(1)</script>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "![x](data:text/html,hi)",
            "a <img src=x onerror=alert(1)> b",
            "`<b>`",
            "```\"><script>\nx\n```",
            "[x](https://a.example/\"onmouseover=alert(1))",
        ] {
            let html = html(evil);
            let tags = [
                "<script",
                "<img",
                "javascript:",
                "data:",
                "<b>",
                "\"onmouse",
            ];
            for tag in tags {
                let lower = html.to_lowercase();
                assert!(!lower.contains(tag), "{evil}: {html}");
            }
        }
    }

    #[test]
    fn markdown_becomes_html() {
        let text = "# Soup\n\nTake **two** onions\nand `salt`.\n\n1. cut\n2. boil\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[more](https://soup.example/?a=1&b=2)";
        insta::assert_snapshot!(html(text), @r#"<h3>Soup</h3><p>Take <strong>two</strong> onions<br>and <code>salt</code>.</p><ol start="1"><li>cut</li><li>boil</li></ol><div class="scroll-x"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table></div><p><a href="https://soup.example/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer">more</a></p>"#);
    }
}
