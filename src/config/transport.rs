//! Reads how Telegram's messages reach us: the mode, the webhook's addresses and the proxy.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;

use reqwest::Url;

use super::address::is_loopback;
use super::reader::Section;
use super::secrets::Vault;
use super::{Problem, Secret, Transport, TransportMode, Webhook, schema};

/// Only this machine, because the reverse proxy with the certificate usually runs here.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8443);

/// The webhook's addresses are checked in both modes, but needed with `webhook` only.
pub(super) fn transport(section: &Section<'_>) -> Transport {
    let mode = section.choice("mode").unwrap_or_default();
    let webhook = section
        .section("webhook", &schema::WEBHOOK)
        .and_then(|section| webhook(&section));
    match (mode, webhook) {
        (TransportMode::Polling, _) => Transport::Polling,
        (TransportMode::Webhook, Some(webhook)) => Transport::Webhook(webhook),
        (TransportMode::Webhook, None) => {
            if section.value("webhook").is_none() {
                section.problems.note(no_webhook(section));
            }
            Transport::Polling
        }
    }
}

fn webhook(section: &Section<'_>) -> Option<Webhook> {
    let listen = listen(section);
    section.value("url")?;
    let url = section
        .address("url", "")?
        .url
        .trim_end_matches('/')
        .to_owned();
    Some(Webhook {
        url,
        listen: listen?,
    })
}

fn listen(section: &Section<'_>) -> Option<SocketAddr> {
    if section.value("listen").is_none() {
        return Some(LISTEN);
    }
    let text = section.text("listen")?;
    let address = text.value.parse().ok();
    if address.is_none() {
        let problem = Problem::new(text.span, "`listen` is not an address to listen on")
            .label("expected an IP address and a port");
        section
            .problems
            .note(problem.help(format!("write it like `{}`", section.usage("listen"))));
    }
    address
}

/// The proxy's address, as a secret, because the address may hold a password.
pub(super) fn proxy(section: &Section<'_>, vault: &Vault<'_>, api_url: &str) -> Option<Secret> {
    let value = section.value("proxy")?;
    let (proxy, is_written_here) = match value.get_ref().as_str() {
        Some(text) => (Secret::new(text), true),
        None => (vault.secret(section, "proxy")?, false),
    };
    // An unreadable secret is empty, and was noted where that matters.
    if proxy.expose().is_empty() && !is_written_here {
        return None;
    }
    match check_proxy(proxy.expose(), is_written_here, api_url) {
        Ok(()) => Some(proxy),
        Err(refusal) => {
            section.problems.note(refusal.problem(value.span()));
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

fn check_proxy(text: &str, is_written_here: bool, api_url: &str) -> Result<(), Refusal> {
    let url = Url::parse(text).map_err(|_| Refusal::NoProxy)?;
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    if !matches!(url.scheme(), "http" | "https") || !is_bare {
        return Err(Refusal::NoProxy);
    }
    let has_login = !url.username().is_empty() || url.password().is_some();
    if has_login && is_written_here {
        return Err(Refusal::Login);
    }
    // A proxy sees whole calls to a plain http address, and the token is in each of them.
    let is_elsewhere = !is_loopback(url.host_str().unwrap_or_default());
    if is_elsewhere && api_url.starts_with("http://") {
        Err(Refusal::Unencrypted)
    } else {
        Ok(())
    }
}

impl Refusal {
    fn problem(self, span: Range<usize>) -> Problem {
        let problem = |message: &str| Problem::new(span, format!("`proxy` {message}"));
        match self {
            Refusal::NoProxy => problem("is not a proxy that can be used")
                .label("expected http:// or https://, a host and a port")
                .help("write it like `proxy = \"http://127.0.0.1:3128\"`; other kinds, such as SOCKS, are not supported"),
            Refusal::Login => problem("has a login in the config file itself")
                .label("a secret in plain text, hidden here")
                .help("move the whole address to the environment and write `proxy = { env = \"TELEGRAM_PROXY\" }`, or to a file"),
            Refusal::Unencrypted => problem("would see the token")
                .label("a proxy on another machine, for plain http")
                .help("use https:// in `api_url`, or a proxy on this machine"),
        }
    }
}

fn no_webhook(section: &Section<'_>) -> Problem {
    let span = section
        .value("mode")
        .map(|value| value.span())
        .unwrap_or_default();
    Problem::new(span, "`mode = \"webhook\"` needs an address that Telegram can call")
        .label("there is no [telegram.webhook]")
        .help(
            "add `[telegram.webhook]` with a line such as `url = \"https://bot.example.org/hook\"`, or use `mode = \"polling\"`",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_http_and_keeps_its_password_elsewhere() {
        let check = |text, expected| {
            assert_eq!(
                check_proxy(text, true, "https://api.telegram.org"),
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
            check_proxy(
                "http://ann:hunter2@127.0.0.1:3128",
                false,
                "https://api.telegram.org"
            ),
            Ok(())
        );
        assert_eq!(
            check_proxy("http://proxy.example.org", true, "http://127.0.0.1:8081"),
            Err(Refusal::Unencrypted)
        );
        assert_eq!(
            check_proxy("http://localhost:3128", true, "http://127.0.0.1:8081"),
            Ok(())
        );
    }
}
