//! Checks addresses of servers, because the bot sends them secrets.

use std::net::IpAddr;

use reqwest::Url;

use super::lookalikes::looks_like_secret;
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
    NoPort,
    HoldsToken,
    Unencrypted,
    TooMuch,
}

fn parse(text: &str) -> Result<Address, Refusal> {
    if holds_token(text) {
        return Err(Refusal::HoldsToken);
    }
    let url = Url::parse(text).map_err(|_| match text.split("://").nth(1) {
        Some(rest) if has_impossible_port(rest) => Refusal::NoPort,
        _ => Refusal::NoAddress,
    })?;
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

/// Whether a part of the path is a bot's token or the place of one: `…/bot<TOKEN>`.
pub(super) fn holds_token(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else {
        return false;
    };
    rest.split('/').skip(1).any(|part| {
        let behind = part.strip_prefix("bot");
        let is_place = behind.is_some_and(|rest| rest.starts_with(['<', '{', '$']));
        is_place || looks_like_secret(behind.unwrap_or(part))
    })
}

/// Whether the port of `host:port/path` is above the highest one.
pub(super) fn has_impossible_port(text: &str) -> bool {
    let host = text.split('/').next().unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port);
    port.is_some_and(|port| {
        let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        is_number && port.parse::<u16>().is_err()
    })
}

/// `~/logs`: only a shell knows a folder called so.
pub(super) fn tilde(path: &Spanned<String>) -> Option<Problem> {
    let is_home = path.value == "~" || path.value.starts_with("~/");
    is_home.then(|| {
        Problem::new(path.span.clone(), "`~` stands for no folder in this file")
            .label("a folder called `~` is surely not meant")
            .help("write the whole path, such as `/home/ann/…`, or a path that begins in the folder of config.toml")
    })
}

/// Explains why a text is no address to listen on.
pub(super) fn not_to_listen_on(section: &Section<'_>, text: &Spanned<String>) -> Problem {
    let problem = |message: &str| Problem::new(text.span.clone(), message);
    if has_impossible_port(&text.value) {
        return problem("`listen` has a port that does not exist")
            .label(HIGHEST_PORT)
            .help(format!("write it like `{}`", section.usage("listen")));
    }
    let (host, port) = text.value.rsplit_once(':').unwrap_or(("", &text.value));
    let is_here = matches!(host, "" | "localhost") && port.parse::<u16>().is_ok();
    problem("`listen` is not an address to listen on")
        .label("expected an IP address and a port")
        .help(match is_here {
            true => format!("write `listen = \"127.0.0.1:{port}\"`"),
            false => format!("write it like `{}`", section.usage("listen")),
        })
}

const HIGHEST_PORT: &str = "the highest port is 65535";

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
            Refusal::NoPort => problem("has a port that does not exist")
                .label(HIGHEST_PORT)
                .help(format!("write it like `{}`", section.usage(name))),
            Refusal::HoldsToken => problem("has a token in it, or a place for one")
                .label("Parlor adds the token by itself")
                .help(format!(
                    "write only the server, such as `{}`; the token has a key of its own",
                    section.usage(name)
                )),
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
        check("http://localhost:70000/", Err(Refusal::NoPort));
        for path in [
            "bot<TOKEN>",
            "bot123456:AAEhBOweik9ai2o01xx",
            "v1/sk-abcdefghijkl",
        ] {
            let text = format!("https://api.telegram.org/{path}");
            check(&text, Err(Refusal::HoldsToken));
        }
        check("https://example.org/bots/", Ok("https://example.org/bots/"));
        check("https://user:pass@example.org/", Err(Refusal::TooMuch));
        check("https://example.org/?key=1", Err(Refusal::TooMuch));
    }
}
