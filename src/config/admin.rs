//! Reads `[admin]`: the listener for programs that watch the gateway.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;

use super::Problem;
use super::reader::Section;
use super::secrets::{Secret, Vault};

/// Only this machine.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7717);

/// The listener with metrics and the state of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    pub listen: SocketAddr,
    /// Proves a caller. Needed where other machines reach the listener.
    pub token: Option<Secret>,
    pub metrics: MetricsAccess,
}

/// Who may read the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetricsAccess {
    /// Callers with the token.
    #[default]
    Token,
    /// Every program on this machine.
    Open,
}

impl Admin {
    /// Whether only programs on this machine reach the listener.
    pub fn is_local(&self) -> bool {
        is_local(self.listen)
    }
}

fn is_local(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// None for an address that cannot be used.
pub(super) fn read(section: &Section<'_>, vault: &Vault<'_>) -> Option<Admin> {
    let is_public = section.boolean("public").unwrap_or_default();
    let token = vault.secret(section, "token");
    let metrics = section.choice("metrics").unwrap_or_default();
    let listen = match section.value("listen") {
        None => LISTEN,
        Some(_) => listen(section, is_public, token.is_some())?,
    };
    if metrics == MetricsAccess::Open && !is_local(listen) {
        let span = section
            .value("metrics")
            .map(|value| value.span())
            .unwrap_or_default();
        section.problems.note(open_to_all(span));
    }
    Some(Admin {
        listen,
        token,
        metrics,
    })
}

/// An address that other machines reach has to be meant, and needs a token.
fn listen(section: &Section<'_>, is_public: bool, has_token: bool) -> Option<SocketAddr> {
    let text = section.text("listen")?;
    let refusal = match text.value.parse::<SocketAddr>() {
        Err(_) => Problem::new(text.span, "`listen` is not an address to listen on")
            .label("expected an IP address and a port")
            .help(format!("write it like `{}`", section.usage("listen"))),
        Ok(address) if is_local(address) => return Some(address),
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
        .help("write `127.0.0.1` and a port, or add `public = true` and a token if a firewall or a container's network lets only your own programs in")
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
