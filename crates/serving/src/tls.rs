//! The TLS settings of new connections, from the newest certificate and the newest client CA.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{VerifierBuilderError, WebPkiClientVerifier},
    sign::{CertifiedKey, SingleCertAndKey},
};

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("the client CA is not PEM: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("the client CA: {0}")]
    Verifier(#[from] VerifierBuilderError),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

#[derive(Debug)]
struct Parts {
    certificate: Arc<CertifiedKey>,
    client_ca: Option<Arc<RootCertStore>>,
    config: Arc<ServerConfig>,
}

#[derive(Debug)]
pub(crate) struct Tls(Mutex<Parts>);

impl Tls {
    pub(crate) fn new(certificate: Arc<CertifiedKey>) -> Result<Self, TlsError> {
        let config = config(&certificate, None)?;
        Ok(Tls(Mutex::new(Parts { certificate, client_ca: None, config })))
    }

    /// What the next connection uses.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.parts().config.clone()
    }

    pub(crate) fn set_certificate(&self, certificate: Arc<CertifiedKey>) -> Result<(), TlsError> {
        let mut parts = self.parts();
        parts.config = config(&certificate, parts.client_ca.as_ref())?;
        parts.certificate = certificate;
        Ok(())
    }

    /// Sets the certificates that vouch for clients, as PEM. Without any, clients are not asked for a certificate.
    pub(crate) fn set_client_ca(&self, pem: Option<&str>) -> Result<(), TlsError> {
        let client_ca = pem.map(roots).transpose()?.map(Arc::new);
        let mut parts = self.parts();
        parts.config = config(&parts.certificate, client_ca.as_ref())?;
        parts.client_ca = client_ca;
        Ok(())
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The TLS settings of a server that asks nobody for a certificate. An error if the key is not that of the certificate.
pub fn tls_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, TlsError> {
    config(&Arc::new(CertifiedKey::from_der(chain, key, &ring::default_provider())?), None)
}

fn roots(pem: &str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate?)?;
    }
    Ok(roots)
}

fn config(
    certificate: &Arc<CertifiedKey>,
    client_ca: Option<&Arc<RootCertStore>>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let builder = match client_ca {
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider);
            builder.with_client_cert_verifier(verifier.allow_unauthenticated().build()?)
        }
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certificate.clone())));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
    use rustls::{ClientConfig, pki_types::ServerName};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_rustls::{TlsAcceptor, TlsConnector};

    use super::*;
    use crate::peer::common_name;

    type Ca = CertifiedIssuer<'static, KeyPair>;
    type Pair = (CertificateDer<'static>, PrivateKeyDer<'static>);

    fn ca(name: &str) -> Ca {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    fn signed(ca: &Ca, name: &str) -> Pair {
        let mut params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, ca).unwrap().der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into()))
    }

    fn certified((certificate, key): Pair) -> Arc<CertifiedKey> {
        Arc::new(CertifiedKey::from_der(vec![certificate], key, &ring::default_provider()).unwrap())
    }

    /// Connects and returns the name that the server sees; an error if either side refuses.
    async fn connect(tls: &Tls, trusted: &Ca, client: Option<Pair>) -> Result<Option<String>, String> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let config = match client {
            Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
            None => builder.with_no_client_auth(),
        };
        let (near, far) = tokio::io::duplex(64 * 1024);
        let name = ServerName::try_from("localhost").unwrap();
        let client = async {
            let mut stream = TlsConnector::from(Arc::new(config)).connect(name, near).await?;
            // A refused certificate is told only after the handshake.
            stream.read_u8().await
        };
        let server = async {
            let mut stream = TlsAcceptor::from(tls.config()).accept(far).await?;
            let name = stream.get_ref().1.peer_certificates().and_then(|chain| common_name(&chain[0]));
            stream.write_u8(1).await?;
            stream.flush().await?;
            Ok::<_, std::io::Error>(name)
        };
        let (client, server) = tokio::join!(client, server);
        client.map_err(|error| error.to_string())?;
        server.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_client_is_who_the_ca_says_and_nobody_without_a_certificate() {
        let (serving, clients, others) = (ca("serving"), ca("clients"), ca("others"));
        let tls = Tls::new(certified(signed(&serving, "operator"))).unwrap();
        let known = || Some(signed(&clients, "prometheus"));
        assert_eq!(connect(&tls, &serving, known()).await, Ok(None), "no CA yet, so nobody is asked");
        tls.set_client_ca(Some(&clients.pem())).unwrap();
        assert_eq!(connect(&tls, &serving, known()).await, Ok(Some("prometheus".into())));
        assert_eq!(connect(&tls, &serving, None).await, Ok(None));
        assert!(connect(&tls, &serving, Some(signed(&others, "prometheus"))).await.is_err(), "of another CA");
        let both = [clients.pem(), others.pem()].concat();
        tls.set_client_ca(Some(&both)).unwrap();
        assert_eq!(connect(&tls, &serving, Some(signed(&others, "x"))).await, Ok(Some("x".into())), "while it changes");
        for wrong in ["", "garbage"] {
            assert!(tls.set_client_ca(Some(wrong)).is_err(), "{wrong}");
        }
        assert_eq!(connect(&tls, &serving, known()).await, Ok(Some("prometheus".into())), "the one before counts");
    }

    #[tokio::test]
    async fn new_connections_see_the_new_certificate() {
        let (first, second) = (ca("first"), ca("second"));
        let tls = Tls::new(certified(signed(&first, "operator"))).unwrap();
        assert!(connect(&tls, &first, None).await.is_ok() && connect(&tls, &second, None).await.is_err());
        tls.set_certificate(certified(signed(&second, "operator"))).unwrap();
        assert!(connect(&tls, &first, None).await.is_err() && connect(&tls, &second, None).await.is_ok());
    }
}
