//! Checks addresses of servers, because the bot sends them secrets.

use std::net::IpAddr;

use reqwest::Url;

use super::reader::Section;
use super::{Problem, Spanned};

/// An allowed address.
pub(super) struct Address {
    /// Ends with a slash.
    pub(super) url: String,
    pub(super) is_loopback: bool,
}

impl Section<'_> {
    /// The address under a key, or `default` without the key. None for an unusable address.
    pub(super) fn address(&self, name: &str, default: &str) -> Option<Address> {
        let written = match self.value(name) {
            Some(_) => self.text(name)?,
            None => Spanned {
                value: default.to_owned(),
                span: 0..0,
            },
        };
        let address = parse(&written.value);
        address
            .map_err(|refusal| {
                self.problems.note(refusal.problem(self, name, &written));
            })
            .ok()
    }
}

/// Why an address cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    NoAddress,
    Unencrypted,
    TooMuch,
}

fn parse(text: &str) -> Result<Address, Refusal> {
    let url = Url::parse(text).map_err(|_| Refusal::NoAddress)?;
    let is_loopback = is_loopback(url.host_str().unwrap_or_default());
    match url.scheme() {
        "https" => {}
        "http" if is_loopback => {}
        "http" => return Err(Refusal::Unencrypted),
        _ => return Err(Refusal::NoAddress),
    }
    let has_login = !url.username().is_empty() || url.password().is_some();
    if has_login || url.query().is_some() || url.fragment().is_some() {
        return Err(Refusal::TooMuch);
    }
    Ok(Address {
        url: format!("{}/", url.as_str().trim_end_matches('/')),
        is_loopback,
    })
}

/// The address with the missing scheme, for a text such as `localhost:1234/v1`.
fn with_scheme(text: &str) -> Option<String> {
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    let host = text.split('/').next().unwrap_or_default();
    let has_host = host.contains(['.', ':']) || host == "localhost";
    if text.contains("//") || !has_host || !host.chars().all(is_host) {
        return None;
    }
    let both = ["http://", "https://"].map(|scheme| parse(&format!("{scheme}{text}")));
    let found = both.into_iter().find_map(Result::ok);
    found.map(|address| address.url)
}

pub(super) fn is_loopback(host: &str) -> bool {
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

impl Refusal {
    fn problem(self, section: &Section<'_>, name: &str, written: &Spanned<String>) -> Problem {
        let problem =
            |message: &str| Problem::new(written.span.clone(), format!("`{name}` {message}"));
        match self {
            Refusal::NoAddress => match with_scheme(&written.value) {
                Some(url) => problem("is not a whole web address")
                    .label("the beginning is missing")
                    .help(format!("write `{name} = \"{url}\"`")),
                None => problem("is not a web address")
                    .label("expected an address that begins with https://")
                    .help(format!("write it like `{}`", section.usage(name))),
            },
            Refusal::Unencrypted => problem("would send secrets in the clear")
                .label("plain http to another machine")
                .help("use https://; plain http is only for 127.0.0.1, ::1 and localhost"),
            Refusal::TooMuch => problem("has more than a host and a path")
                .label("a login, `?` or `#` in the address")
                .help("delete that part; secrets have keys of their own"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, Refusal>) {
        assert_eq!(
            parse(text).map(|address| address.url).as_deref(),
            expected.as_ref().copied(),
            "{text}"
        );
    }

    #[test]
    fn plain_http_stays_on_this_machine() {
        check("https://api.telegram.org", Ok("https://api.telegram.org/"));
        check("https://example.org/v1//", Ok("https://example.org/v1/"));
        check("http://localhost:8081", Ok("http://localhost:8081/"));
        check("http://127.8.9.1:8081/v1", Ok("http://127.8.9.1:8081/v1/"));
        check("http://[::1]:8081/", Ok("http://[::1]:8081/"));
        check("http://api.telegram.org", Err(Refusal::Unencrypted));
        check("http://192.168.1.5:11434/", Err(Refusal::Unencrypted));
        check("http://localhost.example.org/", Err(Refusal::Unencrypted));
        check("http://127.0.0.1.example.org/", Err(Refusal::Unencrypted));
        check("http://localhost@example.org/", Err(Refusal::Unencrypted));
        check("ftp://localhost/", Err(Refusal::NoAddress));
        check("api.telegram.org", Err(Refusal::NoAddress));
        assert_eq!(
            with_scheme("localhost:1234/v1").as_deref(),
            Some("http://localhost:1234/v1/")
        );
        assert_eq!(
            with_scheme("api.example.org").as_deref(),
            Some("https://api.example.org/")
        );
        assert_eq!(with_scheme("openai"), None);
        assert_eq!(with_scheme("ftp://localhost"), None);
        assert_eq!(with_scheme("user:pass@example.org"), None);
        check("https://", Err(Refusal::NoAddress));
        check("https://user:pass@example.org/", Err(Refusal::TooMuch));
        check("https://example.org/?key=1", Err(Refusal::TooMuch));
    }
}
