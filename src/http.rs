//! The base of every HTTP client of the gateway.

use std::sync::Once;
use std::time::Duration;

use crate::open_files;

/// A server that accepts no connection by then counts as gone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Keeps long polls and slow answers alive through home routers.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// Connections to a server kept open between calls; more are made when many places are answered at
/// once.
const IDLE_CONNECTIONS: usize = 32;

/// A client with a time limit for connecting, but none for the answer.
pub(crate) fn client_builder() -> reqwest::ClientBuilder {
    install_crypto();
    reqwest::Client::builder()
        .user_agent(concat!("parlor/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(TCP_KEEPALIVE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS.min(open_files::shares().platform_calls))
}

/// Gives rustls its cryptography. Must run before any client is built.
pub(crate) fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error means a provider is already installed, and any provider will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
