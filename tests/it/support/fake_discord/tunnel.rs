//! A proxy that leads `https://discord.com` to the fake, for clients that insist on the real
//! address.
//!
//! serenity's rate limiter does: with it on, the address cannot be set. The client needs
//! `Proxy::all(tunnel.proxy_url())` and
//! `add_root_certificate(Certificate::from_pem(tunnel.root_pem()))`.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::FakeDiscord;

const HOST: &str = "discord.com";
const MAX_HEAD_BYTES: usize = 8192;

/// Stops when dropped.
pub(crate) struct Tunnel {
    proxy_url: String,
    root_pem: String,
    task: JoinHandle<()>,
}

impl Tunnel {
    pub(crate) fn proxy_url(&self) -> &str {
        &self.proxy_url
    }

    pub(crate) fn root_pem(&self) -> &[u8] {
        self.root_pem.as_bytes()
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeDiscord {
    pub(crate) async fn tunnel(&self) -> Tunnel {
        let made = rcgen::generate_simple_self_signed([HOST.to_owned()]).expect("a certificate");
        let acceptor = acceptor(&made);
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a free port on loopback");
        let proxy_url = format!(
            "http://{}",
            listener
                .local_addr()
                .expect("a bound listener has an address")
        );
        let target = self.url().trim_start_matches("http://").to_owned();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(lead(stream, acceptor.clone(), target.clone()));
            }
        });
        Tunnel {
            proxy_url,
            root_pem: made.cert.pem(),
            task,
        }
    }
}

fn acceptor(made: &rcgen::CertifiedKey<rcgen::KeyPair>) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a private key");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has them all");
    let config = config
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("they belong together");
    TlsAcceptor::from(Arc::new(config))
}

async fn lead(mut stream: TcpStream, acceptor: TlsAcceptor, target: String) -> std::io::Result<()> {
    let head = read_head(&mut stream).await?;
    if !head.starts_with(&format!("CONNECT {HOST}:443 ")) {
        return stream
            .write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
            .await;
    }
    stream
        .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
        .await?;
    let mut near = acceptor.accept(stream).await?;
    let mut far = TcpStream::connect(target).await?;
    copy_bidirectional(&mut near, &mut far).await.map(drop)
}

/// A client says nothing more before it is answered, so the head is all there is.
async fn read_head(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < MAX_HEAD_BYTES {
        if stream.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
