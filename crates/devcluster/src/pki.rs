//! The cluster's own certificates: one CA, a server certificate for loopback, and a client certificate per component.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};

use crate::error::{Context, Result};

const CA_FILE: &str = "ca.crt";

pub(crate) struct Pki {
    folder: PathBuf,
    ca: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key, as PEM.
#[derive(Debug, Clone)]
pub struct CertificateAndKey {
    pub certificate: String,
    pub key: String,
}

impl Pki {
    /// Makes the CA, the serving certificate and the key that signs service account tokens, as files in `folder`.
    /// `address`: another one than loopback at which the API server is reached.
    pub(crate) fn create(folder: &Path, address: Option<Ipv4Addr>) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "devcluster");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)?;
        let pki = Pki { folder: folder.to_owned(), ca };

        let server = pki.server(address)?;
        let tokens = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        pki.write(CA_FILE, &pki.ca_pem())?;
        pki.write("server.crt", &server.certificate)?;
        pki.write("server.key", &server.key)?;
        pki.write("tokens.key", &tokens.serialize_pem())?;
        pki.write("tokens.pub", &tokens.public_key_pem())?;
        Ok(pki)
    }

    pub(crate) fn ca_pem(&self) -> String {
        self.ca.pem()
    }

    pub(crate) fn ca_file(&self) -> PathBuf {
        self.folder.join(CA_FILE)
    }

    /// A client certificate; Kubernetes reads the common name as the user and the organization as a group.
    pub(crate) fn client(&self, user: &str, group: &str) -> Result<CertificateAndKey> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn server(&self, address: Option<Ipv4Addr>) -> Result<CertificateAndKey> {
        let mut names = ["127.0.0.1", "localhost", "kubernetes.default.svc", "10.0.0.1"].map(String::from).to_vec();
        names.extend(address.map(|address| address.to_string()));
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "devcluster-server");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<CertificateAndKey> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &self.ca)?.pem();
        Ok(CertificateAndKey { certificate, key: key.serialize_pem() })
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).context(|| format!("writing {}", path.display()))
    }
}

impl std::fmt::Debug for Pki {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pki in {}", self.folder.display())
    }
}
