//! Fetches a page, over redirects, and connects to public addresses only.

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};

use super::address::is_public;
use super::nearby::Nearby;
use crate::open_files;
use crate::slots::{Slot, Slots};
use crate::tools::Scope;
use crate::tools::background::Share;

/// Time for a page, with all redirects.
const MAX_TIME: Duration = Duration::from_secs(20);
const MAX_REDIRECTS: usize = 5;
/// Bytes of a page, after unpacking.
pub(super) const MAX_BYTES: usize = 2 * 1024 * 1024;
const MAX_URL_BYTES: usize = 4096;
/// Pages at the same time, of all agents and of a single one.
const MOST_PAGES: usize = 24;
const MOST_PAGES_OF_ONE: usize = 8;
/// Ports of web servers. Servers on other ports could mistake a request for a command of their own
/// protocol.
const PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// Rules for addresses, ports and the lookup of names. Tests have rules of their own; the config
/// cannot change them.
#[derive(Clone)]
pub(super) struct Rules {
    pub(super) may_connect: fn(IpAddr) -> bool,
    /// This machine and its neighbours at this moment: no page is fetched there, whatever the
    /// number of the address.
    pub(super) nearby: fn() -> io::Result<Nearby>,
    pub(super) may_use_port: fn(u16) -> bool,
    /// None leaves the lookup to the system.
    pub(super) lookup: fn(&str) -> Option<Vec<IpAddr>>,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            may_connect: is_public,
            nearby: Nearby::now,
            may_use_port: |port| PORTS.contains(&port),
            lookup: |_| None,
        }
    }
}

impl Rules {
    /// Whether a connection may be made to all of these addresses of a host.
    fn check(&self, host: &str, addresses: &[IpAddr]) -> Result<(), Forbidden> {
        if !addresses.iter().all(|ip| (self.may_connect)(*ip)) {
            return Err(Forbidden::NotPublic(host.to_owned()));
        }
        // Without knowing what is nearby, nothing is known to be elsewhere.
        let elsewhere =
            (self.nearby)().is_ok_and(|nearby| !addresses.iter().any(|ip| nearby.has(*ip)));
        if elsewhere {
            Ok(())
        } else {
            Err(Forbidden::Nearby(host.to_owned()))
        }
    }
}

/// Why no connection is made to a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Forbidden {
    #[error("`{0}` is not on the public internet, and nothing else is fetched")]
    NotPublic(String),
    #[error("`{0}` is this machine or in a network of it, and nothing is fetched there")]
    Nearby(String),
}

/// A fetched page.
pub(super) struct Page {
    /// The address after all redirects.
    pub(super) url: Url,
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
    /// There was more.
    pub(super) is_cut: bool,
}

/// Why there is no page. The text is for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FetchError {
    #[error("this is no web address; it begins with http:// or https://")]
    NoAddress,
    #[error("addresses with a name or password in them are not fetched")]
    HasLogin,
    #[error("port {0} is not one that web pages are on")]
    Port(u16),
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    #[error("it leads on to more than {MAX_REDIRECTS} other addresses")]
    TooManyRedirects,
    #[error("the server answered {0}")]
    Status(u16),
    #[error("it took longer than {} s", MAX_TIME.as_secs())]
    TooSlow,
    #[error("it cannot be reached: {0}")]
    NotReached(String),
}

/// The HTTP client of all fetches, without redirects and without a proxy.
pub(super) fn client(rules: &Rules) -> Client {
    let builder = crate::http::client_builder()
        .redirect(Policy::none())
        .referer(false);
    let builder = builder
        .dns_resolver(Arc::new(Guarded(rules.clone())))
        .pool_max_idle_per_host(1);
    builder
        .build()
        .expect("a client without special settings can be built")
}

/// Waits for the right to have a page in memory. Pages are handed round by agent.
pub(super) async fn slot(scope: &Scope) -> Slot<Share> {
    static PAGES: LazyLock<Arc<Slots<Share>>> = LazyLock::new(|| {
        let most = open_files::shares().pages.min(MOST_PAGES);
        Slots::with_most_of_one(most, MOST_PAGES_OF_ONE.min(most))
    });
    PAGES.acquire(Share::of(scope)).await
}

pub(super) async fn fetch(
    client: &Client,
    rules: &Rules,
    address: &str,
) -> Result<Page, FetchError> {
    let fetched = tokio::time::timeout(MAX_TIME, follow(client, rules, address)).await;
    fetched.unwrap_or(Err(FetchError::TooSlow))
}

async fn follow(client: &Client, rules: &Rules, address: &str) -> Result<Page, FetchError> {
    let mut url = Url::parse(address).map_err(|_| FetchError::NoAddress)?;
    for _ in 0..=MAX_REDIRECTS {
        check(rules, &url)?;
        let request = client
            .get(url.clone())
            .header(ACCEPT, "text/html, text/plain;q=0.9, */*;q=0.5");
        let response = request.send().await.map_err(not_reached)?;
        let location = response
            .headers()
            .get(LOCATION)
            .and_then(|location| location.to_str().ok());
        match location.filter(|_| response.status().is_redirection()) {
            Some(location) => url = url.join(location).map_err(|_| FetchError::NoAddress)?,
            None => return page(url, response).await,
        }
    }
    Err(FetchError::TooManyRedirects)
}

/// Checks the address as written. Names are checked by the resolver, for the very connection.
fn check(rules: &Rules, url: &Url) -> Result<(), FetchError> {
    if !["http", "https"].contains(&url.scheme()) || url.as_str().len() > MAX_URL_BYTES {
        return Err(FetchError::NoAddress);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(FetchError::HasLogin);
    }
    let port = url.port_or_known_default().unwrap_or(0);
    let host = url.host_str().ok_or(FetchError::NoAddress)?;
    // An IP address needs no resolver, so this is its only check.
    let literal = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    if let Ok(ip) = literal {
        rules.check(host, &[ip])?;
    }
    if (rules.may_use_port)(port) {
        Ok(())
    } else {
        Err(FetchError::Port(port))
    }
}

async fn page(url: Url, mut response: Response) -> Result<Page, FetchError> {
    if !response.status().is_success() {
        return Err(FetchError::Status(response.status().as_u16()));
    }
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(not_reached)? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BYTES {
            body.truncate(MAX_BYTES);
            return Ok(Page {
                url,
                content_type,
                body,
                is_cut: true,
            });
        }
    }
    Ok(Page {
        url,
        content_type,
        body,
        is_cut: false,
    })
}

/// Resolves names for connections. A name with a forbidden address is refused altogether, because
/// such a name is an attack or a mistake.
struct Guarded(Rules);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.0.clone();
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = match (rules.lookup)(name.as_str()) {
                Some(known) => known.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect(),
                None => tokio::net::lookup_host((name.as_str(), 0)).await?.collect(),
            };
            let ips: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
            rules.check(name.as_str(), &ips)?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn not_reached(error: reqwest::Error) -> FetchError {
    let is_timeout = error.is_timeout();
    let error = error.without_url();
    let mut cause: &dyn Error = &error;
    while let Some(next) = cause.source() {
        if let Some(forbidden) = next.downcast_ref::<Forbidden>() {
            return FetchError::Forbidden(forbidden.clone());
        }
        cause = next;
    }
    if is_timeout {
        FetchError::TooSlow
    } else {
        FetchError::NotReached(cause.to_string())
    }
}
