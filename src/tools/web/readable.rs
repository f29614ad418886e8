//! Makes text of a page: which kinds can be read, in which letters they are written, and what of them is for people.

use encoding_rs::{Encoding, UTF_8};

/// Columns that a page is laid out in.
const WIDTH: usize = 100;
/// Where a page says its letters, if its server did not.
const DECLARED_WITHIN: usize = 1024;

/// Elements inside each other. Laying out takes time with the square of it, and no page for people comes near.
const MAX_DEPTH: usize = 1000;
/// Elements that are closed by what follows, or have nothing in them.
const FLAT: [&str; 18] = [
    "p", "li", "td", "th", "tr", "dt", "dd", "br", "hr", "img", "meta", "link", "input", "option", "source", "col", "wbr", "area",
];

/// The text, or none for what is not made of words. Blocks.
pub(super) fn readable(content_type: &str, body: &[u8]) -> Option<String> {
    let (kind, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    let kind = kind.trim().to_ascii_lowercase();
    let is_html = ["text/html", "application/xhtml+xml"].contains(&kind.as_str()) || (kind.is_empty() && looks_like_html(body));
    if !is_html && !is_text(&kind, body) {
        return None;
    }
    let text = decoded(parameters, body);
    if !is_html {
        return Some(text);
    }
    if depth(&text) > MAX_DEPTH {
        return Some(without_tags(&text));
    }
    // A page that cannot be laid out is still text.
    let laid_out = html2text::config::plain().string_from_read(text.as_bytes(), WIDTH);
    Some(laid_out.unwrap_or(text))
}

/// How deep elements may be inside each other, at most.
fn depth(html: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for tag in html.split('<').skip(1) {
        let name = |tag: &str| tag.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
        match tag.strip_prefix('/') {
            Some(closed) if !FLAT.contains(&name(closed).as_str()) => depth = depth.saturating_sub(1),
            None if tag.starts_with(|c: char| c.is_ascii_alphabetic()) && !FLAT.contains(&name(tag).as_str()) => depth += 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// What is left when everything between `<` and `>` is taken out.
fn without_tags(html: &str) -> String {
    let pieces = html
        .split('<')
        .enumerate()
        .map(|(index, piece)| if index == 0 { piece } else { piece.split_once('>').map_or("", |(_, text)| text) });
    pieces.map(str::trim).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

fn is_text(kind: &str, body: &[u8]) -> bool {
    let said = kind.starts_with("text/")
        || ["application/json", "application/xml", "application/javascript", "application/yaml", "application/toml"]
            .contains(&kind)
        || kind.ends_with("+json")
        || kind.ends_with("+xml");
    (said || kind.is_empty()) && !body.iter().take(DECLARED_WITHIN).any(|byte| *byte == 0) || is_utf16(body) && said
}

fn is_utf16(body: &[u8]) -> bool {
    body.starts_with(&[0xff, 0xfe]) || body.starts_with(&[0xfe, 0xff])
}

fn looks_like_html(body: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&body[..body.len().min(DECLARED_WITHIN)]).to_ascii_lowercase();
    head.contains("<html") || head.contains("<!doctype html")
}

/// A mark at the beginning decides, then the server, then the page itself, then UTF-8.
fn decoded(parameters: &str, body: &[u8]) -> String {
    let encoding = charset(parameters).or_else(|| declared(body)).unwrap_or(UTF_8);
    encoding.decode(body).0.into_owned()
}

fn charset(text: &str) -> Option<&'static Encoding> {
    let at = text.to_ascii_lowercase().find("charset=")? + "charset=".len();
    let label = text[at..].trim_start_matches(['"', '\'']);
    let label = label.split(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c)).next()?;
    Encoding::for_label(label.as_bytes())
}

fn declared(body: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&body[..body.len().min(DECLARED_WITHIN)]);
    charset(&head.replace(char::is_whitespace, " "))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn a_page_is_read_as_a_person_would() {
        let html = "<html><head><title>T</title><style>p{}</style><script>alert(1)</script></head><body><h1>Roses</h1>\
                    <p>They need <b>cutting</b> &amp; care. <a href='/more'>More</a></p><ul><li>red<li>white</ul></body></html>";
        assert_snapshot!(readable("text/html; charset=utf-8", html.as_bytes()).unwrap(), @r"
        # Roses

        They need **cutting** & care. [More][1]
        * red
        * white

        [1]: /more
        ");
    }

    #[test]
    fn letters_of_any_land_are_read() {
        let check = |content_type: &str, body: &[u8], expected: &str| {
            assert_eq!(readable(content_type, body).unwrap().trim(), expected, "{content_type}");
        };
        check("text/plain; charset=iso-8859-1", b"caf\xe9", "café");
        check("text/plain; charset=\"Shift_JIS\"", b"\x93\xfa\x96\x7b", "日本");
        check("text/html", b"<meta charset=windows-1251><p>\xec\xe8\xf0</p>", "мир");
        check("text/plain", "grün".as_bytes(), "grün");
        check("text/plain", b"\xff\xfeh\0i\0", "hi");
        check("application/problem+json", b"{}", "{}");
        check("", b"<!doctype html><p>hi", "hi");
    }

    #[test]
    fn what_is_not_made_of_words_is_refused() {
        for kind in ["image/png", "application/pdf", "application/octet-stream", "video/mp4"] {
            assert_eq!(readable(kind, b"abc"), None, "{kind}");
        }
        assert_eq!(readable("", b"\0\x01\x02"), None);
        assert_eq!(readable("text/plain", b"\0\x01\x02"), None);
    }

    #[test]
    fn deep_and_broken_pages_come_to_an_end() {
        assert_eq!(readable("text/html", "<div>a<p>b".repeat(400_000).as_bytes()).unwrap().lines().count(), 800_000);
        assert!(depth(&"<div><p>a<br></div>".repeat(50_000)) < 2);
        assert!(readable("text/html", "<table><tr><td>".repeat(300).as_bytes()).is_some());
        assert!(readable("text/html", b"<<<&&&<a href=").is_some());
    }
}
