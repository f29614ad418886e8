//! Makes text of a page: by its content type, its character encoding and its HTML.

use encoding_rs::{Encoding, UTF_8};

use super::html::simplified;

/// Columns of a page.
const WIDTH: usize = 100;
/// Where a page says its letters, if its server did not.
const DECLARED_WITHIN: usize = 1024;

/// The longest text of a page.
pub(super) const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// The text of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Readable {
    pub(super) text: String,
    /// There was more.
    pub(super) is_cut: bool,
}

/// The text; none for pictures, archives and other data with zero bytes. Blocks, and may take any
/// amount of memory: for a child process only.
pub(super) fn readable(content_type: &str, body: &[u8]) -> Option<Readable> {
    let mut text = whole(content_type, body)?;
    let is_cut = text.len() > MAX_TEXT_BYTES;
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    Some(Readable { text, is_cut })
}

fn whole(content_type: &str, body: &[u8]) -> Option<String> {
    let (kind, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    let kind = kind.trim().to_ascii_lowercase();
    let is_html = ["text/html", "application/xhtml+xml"].contains(&kind.as_str())
        || (kind.is_empty() && looks_like_html(body));
    if !is_html && !is_text(&kind) {
        return None;
    }
    let text = decoded(parameters, body);
    // In UTF-16 every other byte of a text is zero, so letters are looked at, not bytes.
    if text.contains('\0') {
        return None;
    }
    if !is_html {
        return Some(text);
    }
    // A failed layout leaves the page as it was sent.
    let laid_out = html2text::config::plain().string_from_read(simplified(&text).as_bytes(), WIDTH);
    Some(laid_out.unwrap_or(text))
}

fn is_text(kind: &str) -> bool {
    kind.is_empty()
        || kind.starts_with("text/")
        || [
            "application/json",
            "application/xml",
            "application/javascript",
            "application/yaml",
            "application/toml",
        ]
        .contains(&kind)
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
}

fn looks_like_html(body: &[u8]) -> bool {
    let head =
        String::from_utf8_lossy(&body[..body.len().min(DECLARED_WITHIN)]).to_ascii_lowercase();
    head.contains("<html") || head.contains("<!doctype html")
}

/// A mark at the beginning decides, then the server, then the page itself, then UTF-8.
fn decoded(parameters: &str, body: &[u8]) -> String {
    let encoding = charset(parameters)
        .or_else(|| declared(body))
        .unwrap_or(UTF_8);
    encoding.decode(body).0.into_owned()
}

fn charset(text: &str) -> Option<&'static Encoding> {
    let at = text.to_ascii_lowercase().find("charset=")? + "charset=".len();
    let label = text[at..].trim_start_matches(['"', '\'']);
    let label = label
        .split(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c))
        .next()?;
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

    fn text(content_type: &str, body: &[u8]) -> Option<String> {
        whole(content_type, body)
    }

    #[test]
    fn a_page_is_read_as_a_person_would() {
        let html = "<html><head><title>T</title><style>p{}</style><script>alert(1)</script></head><body><h1>Roses</h1>\
                    <p>They need <b>cutting</b> &amp; care. <a href='/more'>More</a></p><ul><li>red<li>white</ul></body></html>";
        assert_snapshot!(text("text/html; charset=utf-8", html.as_bytes()).unwrap(), @r"
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
            assert_eq!(
                text(content_type, body).unwrap().trim(),
                expected,
                "{content_type}"
            );
        };
        check("text/plain; charset=iso-8859-1", b"caf\xe9", "café");
        check(
            "text/plain; charset=\"Shift_JIS\"",
            b"\x93\xfa\x96\x7b",
            "日本",
        );
        check(
            "text/html",
            b"<meta charset=windows-1251><p>\xec\xe8\xf0</p>",
            "мир",
        );
        check("text/plain", "grün".as_bytes(), "grün");
        check("text/plain", b"\xff\xfeh\0i\0", "hi");
        check("application/problem+json", b"{}", "{}");
        check("", b"<!doctype html><p>hi", "hi");
    }

    #[test]
    fn what_is_not_made_of_words_is_refused() {
        for kind in [
            "image/png",
            "application/pdf",
            "application/octet-stream",
            "video/mp4",
        ] {
            assert_eq!(readable(kind, b"abc"), None, "{kind}");
        }
        assert_eq!(readable("", b"\0\x01\x02"), None);
        assert_eq!(readable("text/plain", b"\0\x01\x02"), None);
        // A zero byte anywhere, and in any kind of page, is no text.
        let late = [vec![b'a'; 5000], vec![0]].concat();
        for kind in ["", "text/html", "text/plain", "application/json"] {
            assert_eq!(readable(kind, &late), None, "{kind}");
            assert_eq!(readable(kind, &[0; 5000]), None, "{kind}");
        }
    }

    #[test]
    fn a_text_is_cut_at_a_character() {
        // A letter of one byte on the wire takes three here.
        let page = readable(
            "text/plain; charset=windows-1252",
            &vec![0x80; MAX_TEXT_BYTES / 2],
        );
        let page = page.unwrap();
        assert!(page.is_cut && page.text.ends_with('€'));
        assert_eq!(page.text.len(), MAX_TEXT_BYTES - MAX_TEXT_BYTES % 3);
        assert!(!readable("text/plain", b"short").unwrap().is_cut);
    }

    /// A parser would put what is left open back into every paragraph, or have it lie in each other
    /// without end.
    #[test]
    fn pages_that_are_made_to_grow_do_not() {
        let formatting: String = (0..900).map(|n| format!("<b id={n}>")).collect();
        let growing = format!("<p>{formatting}{}", "<p>x".repeat(400_000));
        assert_eq!(
            text("text/html", growing.as_bytes())
                .unwrap()
                .matches('x')
                .count(),
            400_000
        );
        for unit in [
            "<div>a<p>b",
            "<div></x>a",
            "<div title=\"</div>\">a",
            "<table><tr><td>a",
            "<p><b id=1><object></b></object>a",
        ] {
            let text = text("text/html", unit.repeat(50_000).as_bytes()).unwrap();
            assert_eq!(text.matches('a').count(), 50_000, "{unit}");
        }
        assert!(readable("text/html", b"<<<&&&<a href=").is_some());
        // Beginnings of tags, comments and references that never end.
        for unit in [
            "<",
            "&",
            "</",
            "<!-",
            "<!--",
            "<![CDATA[",
            "&#",
            "<a '",
            "<svg>",
            "<script><!--",
            "&not",
        ] {
            assert!(
                readable("text/html", unit.repeat(150_000).as_bytes()).is_some(),
                "{unit}"
            );
        }
    }
}
