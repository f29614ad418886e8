//! Where every HTTP client of ours begins.

use std::sync::Once;
use std::time::Duration;

use crate::open_files;

/// A server that does not take the connection by then is gone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Keeps long polls and slow answers alive through home routers.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);

/// Connections kept open between calls, to one server; more are made when many places are answered at once.
const IDLE_CONNECTIONS: usize = 32;

/// A client that limits how long connecting takes, but not how long an answer takes.
pub(crate) fn client_builder() -> reqwest::ClientBuilder {
    install_crypto();
    reqwest::Client::builder()
        .user_agent(concat!("parlor/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(TCP_KEEPALIVE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS.min(open_files::shares().platform_calls))
}

/// Gives rustls its cryptography. Must come before the first client is built, whoever builds it.
pub(crate) fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error says that somebody else has installed one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
