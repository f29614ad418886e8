//! Reads `[admin]`: the listener for the dashboard, the HTTP API, and programs that watch the
//! gateway.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;

use super::reader::Section;
use super::secrets::{Secret, Vault};
use super::{Problem, address};

/// Only this machine.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7717);

/// The usual number of prompts, and the most.
pub(super) const PROMPTS_KEPT: u32 = 10;
const MOST_PROMPTS: u32 = 100;

/// The listener with the dashboard, the HTTP API, metrics and health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    pub listen: SocketAddr,
    /// Proves a caller. Needed where other machines reach the listener.
    pub token: Option<Secret>,
    pub metrics: MetricsAccess,
    /// The turns of a place whose prompts are kept for the dashboard.
    pub prompts_kept: u32,
    /// The address of a web server with TLS in front, such as `https://parlor.example`. None
    /// without `behind_proxy`.
    pub url: Option<String>,
}

/// The callers who may read the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetricsAccess {
    /// Callers with the token.
    #[default]
    Token,
    /// Every program on this machine.
    Open,
}

impl Admin {
    /// A section with this address, and the default of every other key.
    pub(crate) fn listening_on(listen: SocketAddr) -> Self {
        Admin {
            listen,
            token: None,
            metrics: MetricsAccess::default(),
            prompts_kept: PROMPTS_KEPT,
            url: None,
        }
    }

    /// Whether only programs on this machine reach the listener.
    pub fn is_local(&self) -> bool {
        is_local(self.listen)
    }
}

fn is_local(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// None for an unusable address.
pub(super) fn read(section: &Section<'_>, vault: &Vault<'_>) -> Option<Admin> {
    let is_public = section.boolean("public").unwrap_or_default();
    let token = vault.secret(section, "token");
    let metrics = section.choice("metrics").unwrap_or_default();
    let url = url(section)?;
    let listen = match section.value("listen") {
        None => LISTEN,
        Some(_) => listen(section, is_public, (token.is_some(), url.is_some()))?,
    };
    if metrics == MetricsAccess::Open && !is_local(listen) {
        let span = section
            .value("metrics")
            .map(|value| value.span())
            .unwrap_or_default();
        section.problems.note(open_to_all(span));
    }
    let prompts_kept = section.count("prompts_kept");
    Some(Admin {
        listen,
        token,
        metrics,
        prompts_kept: prompts_kept.unwrap_or(PROMPTS_KEPT).min(MOST_PROMPTS),
        url,
    })
}

/// The outer address. Outer None: an unusable address.
fn url(section: &Section<'_>) -> Option<Option<String>> {
    let is_behind = section.boolean("behind_proxy").unwrap_or_default();
    let span = |key| section.value(key).map(|value| value.span());
    match (is_behind, span("url")) {
        (false, None) => Some(None),
        (false, Some(span)) => {
            section.problems.note(no_proxy(span));
            None
        }
        (true, None) => {
            let span = span("behind_proxy").unwrap_or_default();
            section.problems.note(no_url(section, span));
            None
        }
        (true, Some(span)) => {
            let url = section.address("url", "")?.url;
            let url = url.trim_end_matches('/');
            let host = url.strip_prefix("https://");
            if host.is_none_or(|host| host.contains('/')) {
                section.problems.note(no_origin(section, span));
                return None;
            }
            Some(Some(url.to_ascii_lowercase()))
        }
    }
}

/// An address that other machines reach has to be meant, and needs a token. Behind a proxy, the
/// proxy is meant.
fn listen(
    section: &Section<'_>,
    is_public: bool,
    (has_token, is_behind): (bool, bool),
) -> Option<SocketAddr> {
    let text = section.text("listen")?;
    let refusal = match text.value.parse::<SocketAddr>() {
        Err(_) => address::not_to_listen_on(section, &text),
        Ok(address) if is_local(address) || is_behind => return Some(address),
        Ok(_) if !is_public => not_only_here(text.span),
        Ok(_) if !has_token => no_token(section, text.span),
        Ok(address) => return Some(address),
    };
    section.problems.note(refusal);
    None
}

fn not_only_here(span: Range<usize>) -> Problem {
    Problem::new(span, "`listen` is open to other machines")
        .label("plain HTTP, for everybody who reaches this address")
        .help("write `127.0.0.1` and a port, or add `public = true` and a token if a firewall or a container's network lets only your own programs in; `behind_proxy = true` and `url` are for a web server with TLS in front")
}

fn no_token(section: &Section<'_>, span: Range<usize>) -> Problem {
    Problem::new(span, "a listener for other machines needs a token")
        .label("nothing would prove a caller")
        .help(format!("add a line such as `{}`", section.usage("token")))
}

fn open_to_all(span: Range<usize>) -> Problem {
    Problem::new(span, "`metrics = \"open\"` works on this machine only")
        .label("other machines reach this listener")
        .help("delete the line, and have the reader of the metrics send the token")
}

fn no_proxy(span: Range<usize>) -> Problem {
    Problem::new(span, "`url` counts behind a proxy only")
        .label("nothing says that a web server with TLS is in front")
        .help("add `behind_proxy = true`, or delete the line")
}

fn no_url(section: &Section<'_>, span: Range<usize>) -> Problem {
    Problem::new(span, "a listener behind a proxy needs its outer address")
        .label("without `url`, nobody could sign in")
        .help(format!("add a line such as `{}`", section.usage("url")))
}

fn no_origin(section: &Section<'_>, span: Range<usize>) -> Problem {
    Problem::new(span, "`url` is not the address of a site with TLS")
        .label("expected https:// and a name, without a path")
        .help(format!("write it like `{}`", section.usage("url")))
}
