//! Reads the key `proxy` of a platform or a provider.

use std::ops::Range;

use reqwest::Url;

use super::address::is_loopback;
use super::reader::Section;
use super::secrets::Vault;
use super::{Problem, Secret};

/// The server that is called through the proxy.
pub(super) struct Server<'a> {
    pub(super) url: &'a str,
    /// The key of its address in the file.
    pub(super) key: &'a str,
}

/// The proxy's address, as a secret, because the address may hold a password.
pub(super) fn read(
    section: &Section<'_>,
    vault: &Vault<'_>,
    server: &Server<'_>,
) -> Option<Secret> {
    let value = section.value("proxy")?;
    let (proxy, is_written_here) = match value.get_ref().as_str() {
        Some(text) => (Secret::new(text), true),
        None => (vault.secret(section, "proxy")?, false),
    };
    // An unreadable secret is empty, and was noted where that matters.
    if proxy.expose().is_empty() && !is_written_here {
        return None;
    }
    match check(proxy.expose(), is_written_here, server.url) {
        Ok(()) => Some(proxy),
        Err(refusal) => {
            section
                .problems
                .note(refusal.problem(value.span(), section, server));
            None
        }
    }
}

/// Why a proxy cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    NoProxy,
    Login,
    Unencrypted,
}

fn check(text: &str, is_written_here: bool, server: &str) -> Result<(), Refusal> {
    let url = Url::parse(text).map_err(|_| Refusal::NoProxy)?;
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if !matches!(url.scheme(), "http" | "https") || !is_bare {
        return Err(Refusal::NoProxy);
    }
    let has_login = !url.username().is_empty() || url.password().is_some();
    if has_login && is_written_here {
        return Err(Refusal::Login);
    }
    // A proxy sees whole calls to a plain http address, with their secrets and prompts.
    let is_elsewhere = !is_loopback(url.host_str().unwrap_or_default());
    if is_elsewhere && server.starts_with("http://") {
        Err(Refusal::Unencrypted)
    } else {
        Ok(())
    }
}

impl Refusal {
    fn problem(self, span: Range<usize>, section: &Section<'_>, server: &Server<'_>) -> Problem {
        let problem = |message: &str| Problem::new(span, format!("`proxy` {message}"));
        match self {
            Refusal::NoProxy => problem("is not a proxy that can be used")
                .label("expected http:// or https://, a host and a port")
                .help("write it like `proxy = \"http://127.0.0.1:3128\"`; other kinds, such as SOCKS, are not supported"),
            Refusal::Login => problem("has a login in the config file itself")
                .label("a secret in plain text, hidden here")
                .help(format!("move the whole address to the environment and write `{}`, or to a file", section.usage("proxy"))),
            Refusal::Unencrypted => problem("would read every call")
                .label("a proxy on another machine, for plain http")
                .help(format!("use https:// in `{}`, or a proxy on this machine", server.key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_http_and_keeps_its_password_elsewhere() {
        let check = |text, expected| {
            assert_eq!(
                super::check(text, true, "https://api.telegram.org"),
                expected,
                "{text}"
            );
        };
        check("http://127.0.0.1:3128", Ok(()));
        check("https://proxy.example.org", Ok(()));
        check("http://proxy.example.org:3128/", Ok(()));
        for text in [
            "",
            "127.0.0.1:3128",
            "socks5://127.0.0.1:1080",
            "http://proxy/path",
            "http://proxy/?a",
        ] {
            check(text, Err(Refusal::NoProxy));
        }
        check("http://ann:hunter2@127.0.0.1:3128", Err(Refusal::Login));
        assert_eq!(
            super::check(
                "http://ann:hunter2@127.0.0.1:3128",
                false,
                "https://api.telegram.org"
            ),
            Ok(())
        );
        assert_eq!(
            super::check("http://proxy.example.org", true, "http://127.0.0.1:8081"),
            Err(Refusal::Unencrypted)
        );
        assert_eq!(
            super::check("http://localhost:3128", true, "http://127.0.0.1:8081"),
            Ok(())
        );
    }
}
