//! How a client logs in to a server that is no API server.

use std::{
    io,
    path::{Path, PathBuf},
};

use kube::config::AuthInfo;
use rustls::pki_types::{
    CertificateDer,
    pem::{self, PemObject},
};

/// A login. The default is nobody, who trusts the CAs of the system.
#[derive(Debug, Clone, Default)]
pub struct Login {
    pub(crate) auth: AuthInfo,
    /// Certificates to trust, in DER. Those of the system without it.
    pub(crate) trusted: Option<Vec<Vec<u8>>>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    #[error("reading {}", .0.display())]
    File(PathBuf, #[source] io::Error),
    #[error("{} holds no token", .0.display())]
    NoToken(PathBuf),
    #[error("reading certificates of {}", .0.display())]
    Certificates(PathBuf, #[source] pem::Error),
    #[error("{} holds no certificate: a CA in PEM was expected", .0.display())]
    NoCertificate(PathBuf),
}

impl Login {
    /// Nobody, who trusts this certificate, in DER, and no other.
    pub(crate) fn trusting(certificate: Vec<u8>) -> Self {
        Login { trusted: Some(vec![certificate]), ..Login::default() }
    }

    /// Reads a token, and a CA in PEM, from files.
    pub fn from_files(token: Option<&Path>, ca: Option<&Path>) -> Result<Self, LoginError> {
        let token = token.map(token_of).transpose()?;
        let auth = AuthInfo { token: token.map(Into::into), ..AuthInfo::default() };
        Ok(Login { auth, trusted: ca.map(certificates_of).transpose()? })
    }

    /// With the token of the kubeconfig's user, if it has no other. A token of the cluster is only sent over TLS.
    pub fn or_user(self, url: &str, user: &AuthInfo) -> Self {
        if self.auth.token.is_some() || !url.starts_with("https://") {
            return self;
        }
        // Client certificates are for the API server.
        let auth = AuthInfo {
            token: user.token.clone(),
            token_file: user.token_file.clone(),
            exec: user.exec.clone(),
            auth_provider: user.auth_provider.clone(),
            ..AuthInfo::default()
        };
        Login { auth, ..self }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, LoginError> {
    std::fs::read(file).map_err(|cause| LoginError::File(file.to_owned(), cause))
}

fn token_of(file: &Path) -> Result<String, LoginError> {
    let text = String::from_utf8(read(file)?).ok();
    let token = text.map(|text| text.trim().to_owned()).filter(|token| !token.is_empty());
    token.ok_or_else(|| LoginError::NoToken(file.to_owned()))
}

fn certificates_of(file: &Path) -> Result<Vec<Vec<u8>>, LoginError> {
    let pem = read(file)?;
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(&pem).map(|found| found.map(|der| der.to_vec())).collect();
    let found = found.map_err(|cause| LoginError::Certificates(file.to_owned(), cause))?;
    if found.is_empty() { Err(LoginError::NoCertificate(file.to_owned())) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_the_kubeconfig_is_sent_over_tls_only_and_without_its_certificate() {
        let user = AuthInfo {
            token: Some("own".to_owned().into()),
            client_certificate_data: Some("of the API server".into()),
            ..AuthInfo::default()
        };
        let login = Login::default().or_user("https://prometheus", &user);
        assert!(login.auth.token.is_some() && login.auth.client_certificate_data.is_none());
        assert!(Login::default().or_user("http://prometheus", &user).auth.token.is_none());
    }

    #[test]
    fn files_without_a_login_are_refused() {
        let none = Path::new("/nowhere/token");
        assert_eq!(Login::from_files(Some(none), None).unwrap_err().to_string(), "reading /nowhere/token");
        // A file of this crate that holds neither.
        let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let told = Login::from_files(None, Some(&other)).unwrap_err().to_string();
        assert!(told.ends_with("Cargo.toml holds no certificate: a CA in PEM was expected"), "{told}");
        assert!(Login::from_files(None, None).unwrap().auth.token.is_none());
    }
}
