//! Certificates: created here, or read from files.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serving::tls_config;

use super::Error;

/// How much the clocks of two machines may differ.
const SKEW: Duration = Duration::from_secs(300);

/// A server certificate and its own CA, which signs nothing else.
#[derive(Debug, Clone)]
pub(super) struct CertificatePair {
    /// As PEM.
    pub(super) authority: String,
    pub(super) server: Arc<ServerConfig>,
}

impl CertificatePair {
    pub(super) fn make(names: &[String], now: Timestamp, lifetime: Duration) -> Result<CertificatePair, Error> {
        let now =
            rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(now.as_second().try_into().unwrap_or_default());
        let valid = |mut params: CertificateParams| {
            (params.not_before, params.not_after) = (now - SKEW, now + lifetime);
            params
        };
        let mut params = valid(CertificateParams::default());
        params.distinguished_name.push(DnType::CommonName, "Eviction Webhook CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)?;

        let mut params = valid(CertificateParams::new(names)?);
        // The common name is for people; clients check the alternative names.
        let name = names.get(names.len() / 2).map_or("eviction-webhook", String::as_str);
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &authority)?;
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|error| Error::Unusable(error.to_owned()))?;
        Ok(CertificatePair { authority: authority.pem(), server: server(vec![certificate.der().clone()], key)? })
    }
}

/// The pair in use and the next one. The API server trusts the next one for a whole period before it is used.
#[derive(Debug)]
pub(super) struct Rotation {
    names: Vec<String>,
    lifetime: Duration,
    current: CertificatePair,
    next: CertificatePair,
}

impl Rotation {
    pub(super) fn start(names: Vec<String>, now: Timestamp, lifetime: Duration) -> Result<Rotation, Error> {
        let (current, next) =
            (CertificatePair::make(&names, now, lifetime)?, CertificatePair::make(&names, now, lifetime)?);
        Ok(Rotation { names, lifetime, current, next })
    }

    /// How long a pair is used. It is created one period before that, and stays valid for one period after it.
    pub(super) fn period(&self) -> Duration {
        self.lifetime / 3
    }

    pub(super) fn rotate(&mut self, now: Timestamp) -> Result<(), Error> {
        let fresh = CertificatePair::make(&self.names, now, self.lifetime)?;
        self.current = std::mem::replace(&mut self.next, fresh);
        Ok(())
    }

    pub(super) fn server(&self) -> Arc<ServerConfig> {
        self.current.server.clone()
    }

    /// The CAs that the API server is to trust, as PEM.
    pub(super) fn authorities(&self) -> String {
        format!("{}{}", self.current.authority, self.next.authority)
    }
}

/// Reads a certificate chain and its key from PEM.
pub(super) fn read(certificates: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, Error> {
    let unusable = |error: rustls::pki_types::pem::Error| Error::Unusable(error.to_string());
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(certificates).collect::<Result<_, _>>().map_err(unusable)?;
    if certificates.is_empty() {
        return Err(Error::Unusable("the file of the certificate holds none".into()));
    }
    server(certificates, PrivateKeyDer::from_pem_slice(key).map_err(unusable)?)
}

fn server(certificates: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Arc<ServerConfig>, Error> {
    tls_config(certificates, key).map_err(|error| Error::Unusable(error.to_string()))
}
