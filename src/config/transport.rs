//! Reads how Telegram's messages reach us: the mode and the webhook's addresses.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;

use super::reader::Section;
use super::{Problem, Transport, TransportMode, Webhook, address, schema};

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

/// An address that other machines reach has to be meant.
fn listen(section: &Section<'_>) -> Option<SocketAddr> {
    let is_public = section.boolean("public").unwrap_or_default();
    if section.value("listen").is_none() {
        return Some(LISTEN);
    }
    let text = section.text("listen")?;
    let address: Option<SocketAddr> = text.value.parse().ok();
    let refusal = match address {
        None => address::not_to_listen_on(section, &text),
        Some(address) if address.ip().to_canonical().is_loopback() || is_public => {
            return Some(address);
        }
        Some(_) => not_only_here(text.span),
    };
    section.problems.note(refusal);
    None
}

fn not_only_here(span: Range<usize>) -> Problem {
    Problem::new(span, "`listen` is open to other machines")
        .label("plain HTTP, for everybody who reaches this address")
        .help("write `127.0.0.1` and a port for a reverse proxy on this machine, or add `public = true` if a firewall or a container's network lets only your proxy in")
}

fn no_webhook(section: &Section<'_>) -> Problem {
    let span = section
        .value("mode")
        .map(|value| value.span())
        .unwrap_or_default();
    Problem::new(span, "`mode = \"webhook\"` needs an address that Telegram can call")
        .label("this file has no [telegram.webhook]")
        .help(
            "add `[telegram.webhook]` with a line such as `url = \"https://bot.example.org/hook\"`, or use `mode = \"polling\"`",
        )
}
