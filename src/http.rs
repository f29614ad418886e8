//! The base of every HTTP client of the gateway.

mod roots;

use std::sync::Once;
use std::time::Duration;

use crate::config::Secret;
use crate::open_files;

/// A server that accepts no connection by then counts as gone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Keeps long polls and slow answers alive through home routers.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// Connections to a server kept open between calls; more are made when many places are answered at
/// once.
const IDLE_CONNECTIONS: usize = 32;

/// A client with a time limit for connecting, but none for the answer. Proxies of the environment
/// do not count: such a proxy would read calls in plain http, with their secrets and prompts, even
/// calls to this machine.
pub(crate) fn client_builder() -> reqwest::ClientBuilder {
    install_crypto();
    reqwest::Client::builder()
        .user_agent(concat!("parlor/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .no_proxy()
        .tls_backend_preconfigured(roots::client_config())
        .tcp_keepalive(TCP_KEEPALIVE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS.min(open_files::shares().platform_calls))
}

/// Lets a client call through the proxy of the config, if any. The config has checked the address.
pub(crate) fn through(
    builder: reqwest::ClientBuilder,
    proxy: Option<&Secret>,
) -> reqwest::ClientBuilder {
    let proxy = proxy.map(|proxy| {
        reqwest::Proxy::all(proxy.expose()).expect("the config checked the proxy's address")
    });
    proxy
        .into_iter()
        .fold(builder, reqwest::ClientBuilder::proxy)
}

/// The body of an answer, but no more than its first `most` bytes: what stands between us and a
/// server may send a page that never ends.
pub(crate) async fn beginning(
    mut response: reqwest::Response,
    most: usize,
) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while body.len() < most
        && let Some(chunk) = response.chunk().await?
    {
        let room = most - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    Ok(body)
}

/// Gives rustls its cryptography. Must run before any client is built.
pub(crate) fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means a provider is already installed, and any provider will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
