//! The certificates of the system, which servers are checked against: read for the first handshake,
//! and shared by all clients. The list has some hundred of them, and every client would read and
//! keep its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// The system's list changes seldom, and a gateway runs for months.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// HTTP/2 with servers that know it.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The settings of a client. Needs rustls's cryptography to be installed.
pub(super) fn client_config() -> ClientConfig {
    let provider = CryptoProvider::get_default().expect("the cryptography is installed");
    let versions = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("the cryptography has the versions of TLS");
    let roots = Arc::new(SystemRoots {
        provider: provider.clone(),
    });
    let checked = versions.dangerous().with_custom_certificate_verifier(roots);
    let mut config = checked.with_no_client_auth();
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
    config
}

/// Checks servers as reqwest does by itself, with [`Verifier`].
#[derive(Debug)]
struct SystemRoots {
    provider: Arc<CryptoProvider>,
}

impl SystemRoots {
    fn verifier(&self) -> Result<Arc<Verifier>, Error> {
        static READ: Mutex<Option<(Instant, Arc<Verifier>)>> = Mutex::new(None);
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, verifier)) = &*read
            && at.elapsed() < READ_AGAIN_AFTER
        {
            return Ok(verifier.clone());
        }
        let verifier = Arc::new(Verifier::new(self.provider.clone())?);
        *read = Some((Instant::now(), verifier.clone()));
        Ok(verifier)
    }
}

impl ServerCertVerifier for SystemRoots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    /// Part of the first message to a server, before any certificate.
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}
