//! How a person logs in to a Prometheus: with the token and the CA that they name, else with the token of their kubeconfig.

use std::{io, path::Path};

use kube::{Config, config::AuthInfo};
use rustls::pki_types::{
    CertificateDer,
    pem::{self, PemObject},
};

#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    #[error("reading {0}")]
    File(String, #[source] io::Error),
    #[error("{0} holds no token")]
    NoToken(String),
    #[error("reading certificates of {0}")]
    Certificates(String, #[source] pem::Error),
    #[error("{0} holds no certificate: a CA in PEM was expected")]
    NoCertificate(String),
}

/// How to log in to a Prometheus.
#[derive(Debug, Clone, Default)]
pub struct Login {
    /// The token, without line breaks.
    token: Option<String>,
    /// Certificates to trust, in DER. Those of the system without it.
    trusted: Option<Vec<Vec<u8>>>,
    /// How the user of the kubeconfig gets a token.
    user: Option<AuthInfo>,
}

impl Login {
    /// The login with a token and a CA of these files. Without a token, it is that of the kubeconfig's user, which is only sent over
    /// TLS.
    pub fn read(url: &str, user: &AuthInfo, token: Option<&Path>, ca: Option<&Path>) -> Result<Self, LoginError> {
        let token = token.map(read_token).transpose()?;
        let trusted = ca.map(read_certificates).transpose()?;
        let is_secure = url.starts_with("https://");
        // Client certificates are for the API server.
        let user = AuthInfo {
            token: user.token.clone(),
            token_file: user.token_file.clone(),
            exec: user.exec.clone(),
            auth_provider: user.auth_provider.clone(),
            ..AuthInfo::default()
        };
        let user = (token.is_none() && is_secure).then_some(user);
        Ok(Login { token, trusted, user })
    }

    /// The configuration of a client.
    pub fn config(self, url: &str) -> Result<Config, http::uri::InvalidUri> {
        let mut config = Config::new(url.trim_end_matches('/').parse()?);
        config.auth_info = self.user.unwrap_or_default();
        config.auth_info.token = self.token.map(Into::into).or(config.auth_info.token);
        config.root_cert = self.trusted;
        Ok(config)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, LoginError> {
    std::fs::read(path).map_err(|error| LoginError::File(path.display().to_string(), error))
}

fn read_token(path: &Path) -> Result<String, LoginError> {
    let text = String::from_utf8(read(path)?).ok();
    let token = text.map(|text| text.trim().to_owned()).filter(|token| !token.is_empty());
    token.ok_or_else(|| LoginError::NoToken(path.display().to_string()))
}

fn read_certificates(path: &Path) -> Result<Vec<Vec<u8>>, LoginError> {
    let name = || path.display().to_string();
    let pem = read(path)?;
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(&pem).map(|found| found.map(|der| der.to_vec())).collect();
    let found = found.map_err(|error| LoginError::Certificates(name(), error))?;
    if found.is_empty() { Err(LoginError::NoCertificate(name())) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_the_kubeconfig_is_sent_over_tls_only_and_one_of_a_file_comes_first() {
        let user = AuthInfo {
            token: Some("own".to_owned().into()),
            client_certificate: Some("own.crt".into()),
            impersonate: Some("somebody".into()),
            ..AuthInfo::default()
        };
        let file = std::env::temp_dir().join(format!("login-{}", std::process::id()));
        std::fs::write(&file, "other\n").unwrap();
        let config = |url: &str, token| Login::read(url, &user, token, None).unwrap().config(url).unwrap().auth_info;
        let sent = |url: &str, token| {
            let sent = config(url, token);
            assert!(sent.client_certificate.is_none() && sent.impersonate.is_none(), "they are for the API server");
            // As it would be in a kubeconfig.
            serde_json::to_value(sent).unwrap()["token"].as_str().map(str::to_owned)
        };
        assert_eq!(sent("https://p/", None).as_deref(), Some("own"));
        assert_eq!(sent("http://p", None), None);
        for url in ["http://p", "https://p"] {
            assert_eq!(sent(url, Some(&*file)).as_deref(), Some("other"));
        }
        std::fs::write(&file, " \n").unwrap();
        let refused = |token, ca| Login::read("https://p", &user, token, ca).unwrap_err().to_string();
        assert!(refused(Some(&*file), None).ends_with("holds no token"));
        assert!(refused(None, Some(&*file)).ends_with("holds no certificate: a CA in PEM was expected"));
        std::fs::remove_file(&file).unwrap();
        assert!(refused(Some(&*file), None).starts_with("reading "));
    }
}
