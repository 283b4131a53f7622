//! The certificate that is served: from files that somebody renews, or else one that we sign ourselves.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, date_time_ymd};
use rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use tokio::time::Instant;

/// The names of the files, as in a Secret of type `kubernetes.io/tls`.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// A certificate of our own is valid for a year, and replaced long before.
const VALIDITY: Duration = Duration::from_secs(365 * 24 * 3600);
const REPLACED: Duration = Duration::from_secs(30 * 24 * 3600);
/// The clocks of others may be behind.
const SKEW: Duration = Duration::from_secs(3600);

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("reading {0}: {1}")]
    File(PathBuf, io::Error),
    #[error("{0}: {1}")]
    Pem(PathBuf, rustls::pki_types::pem::Error),
    #[error("{0} has no certificate")]
    Empty(PathBuf),
    #[error("{0}: {1}")]
    Unusable(PathBuf, rustls::Error),
    #[error("signing a certificate: {0}")]
    Signing(#[from] rcgen::Error),
    #[error("signing a certificate: {0}")]
    OwnKey(#[from] rustls::Error),
}

/// Where the certificate comes from, and which one is served.
#[derive(Debug)]
pub(crate) struct Certificates {
    folder: Option<PathBuf>,
    names: Vec<String>,
    served: Option<Served>,
}

#[derive(Debug)]
enum Served {
    Files(Files),
    Own { since: Instant },
}

/// What the files contain.
#[derive(PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a certificate and its key")
    }
}

impl Certificates {
    /// `names` are those of a certificate of our own.
    pub(crate) fn new(folder: Option<PathBuf>, names: Vec<String>) -> Self {
        Certificates { folder, names, served: None }
    }

    /// Whether what is served comes from files.
    pub(crate) fn are_files(&self) -> bool {
        matches!(self.served, Some(Served::Files(_)))
    }

    /// The first certificate. If the files cannot be used, it is one of our own, and the error says why.
    pub(crate) fn first(&mut self) -> Result<(Arc<CertifiedKey>, Option<CertificateError>), CertificateError> {
        match self.next() {
            Ok(Some(certificate)) => Ok((certificate, None)),
            unusable => Ok((self.own()?, unusable.err())),
        }
    }

    fn own(&mut self) -> Result<Arc<CertifiedKey>, CertificateError> {
        let certified = self_signed(&self.names)?;
        self.served = Some(Served::Own { since: Instant::now() });
        Ok(Arc::new(certified))
    }

    /// The next certificate, if another one has to be served from now on. After an error the old one is kept, unless it is one of
    /// our own that gets too old.
    pub(crate) fn next(&mut self) -> Result<Option<Arc<CertifiedKey>>, CertificateError> {
        match self.newest() {
            Err(_) if matches!(self.served, Some(Served::Own { since }) if since.elapsed() >= REPLACED) => {
                self.own().map(Some)
            }
            next => next,
        }
    }

    fn newest(&mut self) -> Result<Option<Arc<CertifiedKey>>, CertificateError> {
        if let Some(folder) = self.folder.as_deref()
            && let Some(files) = read(folder)?
        {
            if matches!(&self.served, Some(Served::Files(served)) if *served == files) {
                return Ok(None);
            }
            let certified = parse(folder, &files)?;
            self.served = Some(Served::Files(files));
            return Ok(Some(Arc::new(certified)));
        }
        match self.served {
            // Files that went away for a moment come back; nobody would trust one of our own instead.
            Some(Served::Files(_)) => Ok(None),
            Some(Served::Own { since }) if since.elapsed() < REPLACED => Ok(None),
            _ => self.own().map(Some),
        }
    }
}

/// The contents of both files; none if they are not there yet, as in a volume of a Secret that does not exist.
fn read(folder: &Path) -> Result<Option<Files>, CertificateError> {
    let content = |name: &str| {
        let path = folder.join(name);
        match fs::read(&path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CertificateError::File(path, error)),
        }
    };
    Ok(content(CERTIFICATE)?.zip(content(KEY)?).map(|(certificate, key)| Files { certificate, key }))
}

fn parse(folder: &Path, Files { certificate, key }: &Files) -> Result<CertifiedKey, CertificateError> {
    let (certificate_file, key_file) = (folder.join(CERTIFICATE), folder.join(KEY));
    let chain: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.map_err(|error| CertificateError::Pem(certificate_file.clone(), error))?;
    if chain.is_empty() {
        return Err(CertificateError::Empty(certificate_file));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| CertificateError::Pem(key_file, error))?;
    // A certificate and a key that do not belong together were read while the files were being replaced.
    CertifiedKey::from_der(chain, key, &ring::default_provider())
        .map_err(|error| CertificateError::Unusable(certificate_file, error))
}

fn self_signed(names: &[String]) -> Result<CertifiedKey, CertificateError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.to_vec())?;
    params.distinguished_name.push(DnType::CommonName, names.first().map_or("virt-advisor", String::as_str));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let start = date_time_ymd(1970, 1, 1);
    params.not_before = start + now.saturating_sub(SKEW);
    params.not_after = start + now + VALIDITY;
    let certificate = params.self_signed(&key)?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    Ok(CertifiedKey::from_der(vec![certificate.der().clone()], key, &ring::default_provider())?)
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::ServerName;
    use webpki::EndEntityCert;

    use super::*;

    fn write(folder: &Path, name: &str, parts: &[&str]) -> Vec<u8> {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
        if parts.contains(&CERTIFICATE) {
            fs::write(folder.join(CERTIFICATE), certificate.pem()).unwrap();
        }
        if parts.contains(&KEY) {
            fs::write(folder.join(KEY), key.serialize_pem()).unwrap();
        }
        certificate.der().to_vec()
    }

    fn is_for(served: &CertifiedKey, name: &str) -> bool {
        let certificate = EndEntityCert::try_from(&served.cert[0]).unwrap();
        certificate.verify_is_valid_for_subject_name(&ServerName::try_from(name).unwrap()).is_ok()
    }

    #[tokio::test]
    async fn files_are_served_as_soon_as_they_are_there_and_whenever_they_change() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let mut certificates = Certificates::new(Some(at.to_owned()), vec!["own.example.com".into()]);
        assert!(is_for(&certificates.next().unwrap().unwrap(), "own.example.com"), "nothing there yet");
        assert!(!certificates.are_files());
        write(at, "half.example.com", &[CERTIFICATE]);
        assert!(certificates.next().unwrap().is_none(), "only half of it");
        let first = write(at, "first.example.com", &[CERTIFICATE, KEY]);
        assert_eq!(certificates.next().unwrap().unwrap().cert[0].to_vec(), first);
        assert!(certificates.are_files());
        assert!(certificates.next().unwrap().is_none(), "unchanged");
        write(at, "mixed.example.com", &[CERTIFICATE]);
        let error = certificates.next().unwrap_err().to_string();
        assert!(error.contains(CERTIFICATE), "the key is still that of the other one: {error}");
        let second = write(at, "second.example.com", &[CERTIFICATE, KEY]);
        assert_eq!(certificates.next().unwrap().unwrap().cert[0].to_vec(), second);
        for broken in ["", "garbage", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"] {
            fs::write(at.join(CERTIFICATE), broken).unwrap();
            assert!(certificates.next().is_err(), "{broken}");
        }
        fs::remove_file(at.join(CERTIFICATE)).unwrap();
        assert!(certificates.next().unwrap().is_none(), "what was served is kept");
    }

    /// A wrong file must not keep the operator from its work.
    #[tokio::test]
    async fn files_that_cannot_be_used_are_named_and_one_of_our_own_is_served_until_they_can() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        write(at, "first.example.com", &[CERTIFICATE, KEY]);
        fs::write(at.join(KEY), "garbage").unwrap();
        let mut certificates = Certificates::new(Some(at.to_owned()), vec!["own.example.com".into()]);
        let (own, error) = certificates.first().unwrap();
        assert!(is_for(&own, "own.example.com") && !certificates.are_files());
        assert!(error.unwrap().to_string().starts_with(&at.join(KEY).display().to_string()));
        let first = write(at, "first.example.com", &[CERTIFICATE, KEY]);
        assert_eq!(certificates.next().unwrap().unwrap().cert[0].to_vec(), first);
        assert!(certificates.are_files());
    }

    #[tokio::test(start_paused = true)]
    async fn an_own_certificate_has_all_names_and_is_replaced_before_it_expires() {
        let own = ["virt-advisor.openshift-cnv.svc", "localhost", "127.0.0.1"];
        let mut certificates = Certificates::new(None, own.map(str::to_owned).to_vec());
        let first = certificates.next().unwrap().unwrap();
        assert!(own.iter().all(|name| is_for(&first, name)) && !is_for(&first, "example.com"));
        assert!(REPLACED * 2 < VALIDITY);
        assert!(certificates.next().unwrap().is_none());
        tokio::time::advance(REPLACED).await;
        assert_ne!(certificates.next().unwrap().unwrap().cert, first.cert);
    }
}
