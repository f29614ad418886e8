//! Decides whether an address can be the target of a link, and writes out other addresses.

use pulldown_cmark::{CowStr, LinkType};

/// Longer addresses are written out, because Telegram does not document its limit.
const MAX_URL_BYTES: usize = 2048;

/// An open link or image.
#[derive(Debug)]
pub(crate) struct OpenLink {
    pub(crate) url: String,
    title: String,
    /// Where its text begins.
    pub(crate) start: usize,
    /// Telegram can show the text as a link.
    pub(crate) linked: bool,
}

impl OpenLink {
    pub(crate) fn new(link_type: LinkType, url: &CowStr, title: &CowStr, start: usize) -> Self {
        // Telegram finds bare addresses by itself.
        let bare = matches!(link_type, LinkType::Autolink | LinkType::Email);
        OpenLink {
            url: url.to_string(),
            title: title.to_string(),
            start,
            linked: !bare && is_linkable(url),
        }
    }

    /// The same where Telegram allows no link.
    pub(crate) fn in_words(self) -> Self {
        OpenLink {
            linked: false,
            ..self
        }
    }

    /// The address and the title in words, as far as the link does not show them.
    pub(crate) fn remainder(&self, shown: &str) -> String {
        let url = self.url.strip_prefix("mailto:").unwrap_or(&self.url);
        let mut words = String::new();
        if shown.is_empty() {
            words.push_str(url);
        } else if !self.linked && !url.is_empty() && shown != url {
            words.push_str(&format!(" ({url})"));
        }
        if !self.title.is_empty() {
            words.push_str(&format!(" ({})", self.title));
        }
        words
    }
}

/// Whether Telegram takes an address. A message with a refused link is refused as a whole, so this
/// is strict: `localhost` and addresses with user names are out, and `mailto:` would turn into a
/// web address.
fn is_linkable(url: &str) -> bool {
    let well_formed =
        url.len() <= MAX_URL_BYTES && !url.contains(|c: char| c.is_whitespace() || c.is_control());
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    well_formed
        && match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => is_web_host(authority),
            "tg" => {
                !authority.is_empty()
                    && authority
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            }
            _ => false,
        }
}

fn is_web_host(authority: &str) -> bool {
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    let has_port = port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse::<u16>().is_ok_and(|port| port > 0);
    let mut labels = host.split('.');
    let has_domain = host.contains('.') && labels.all(is_host_label);
    has_port && has_domain
}

fn is_host_label(label: &str) -> bool {
    !label.is_empty()
        && label
            .chars()
            .all(|c| c.is_alphanumeric() || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_only_to_what_telegram_takes() {
        let check = |url: &str, linkable: bool| assert_eq!(is_linkable(url), linkable, "{url}");
        check("https://example.com", true);
        check("HTTP://example.com:8080/a?b=(c)#d", true);
        check("https://münchen.de/straße", true);
        check("http://192.168.0.1/", true);
        check("tg://user?id=42", true);
        check("tg://resolve?domain=parlor", true);
        check("http://localhost:3000", false);
        check("https://example.com:99999", false);
        check("https://example.com:", false);
        check("https://user@example.com", false);
        check("https://", false);
        check("https://.", false);
        check("https://a b.com", false);
        check("http://[::1]/", false);
        check("mailto:ann@example.com", false);
        check("tg://", false);
        check("javascript://example.com/%0aalert(1)", false);
        check("ftp://example.com", false);
        check("src/main.rs", false);
        check("", false);
    }
}
