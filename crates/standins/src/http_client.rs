//! A client for the HTTP servers of others: Prometheus and the descheduler.

use std::{fmt, time::Duration};

use kube::{Client, Config};
use kube_io::connect;
use serde_json::Value;
use thiserror::Error;
use tokio::time::timeout;

/// The component of the client in the header `User-Agent`.
const COMPONENT: &str = "lab";
/// An image with one file has no CA certificates.
const NAME_A_FILE: &str = "name a file with the CA of the server in the variable SSL_CERT_FILE, or use http://";

#[derive(Debug, Error)]
#[error("asking {url} for {what}: {problem}")]
pub struct HttpError {
    url: String,
    what: String,
    problem: String,
}

/// A client of one server.
#[derive(Clone)]
pub struct HttpClient {
    url: String,
    client: Client,
    timeout: Duration,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpClient({})", self.url)
    }
}

impl HttpClient {
    /// `certificate` is the one to trust, in DER, if the URL is one of HTTPS. Without it, those of the system are trusted.
    pub fn new(url: &str, certificate: Option<Vec<u8>>, timeout: Duration) -> Result<HttpClient, HttpError> {
        let fail = |problem: String| HttpError { url: url.to_owned(), what: "anything".to_owned(), problem };
        let mut config = Config::new(url.parse().map_err(|problem| fail(format!("this is no URL: {problem}")))?);
        let trusts_the_system = certificate.is_none();
        config.root_cert = certificate.map(|certificate| vec![certificate]);
        let client = connect::client(config, COMPONENT).map_err(|problem| match problem {
            kube::Error::RustlsTls(problem) if trusts_the_system => {
                fail(format!("HTTPS needs CA certificates, and none could be loaded: {problem}; {NAME_A_FILE}"))
            }
            problem => fail(problem.to_string()),
        })?;
        Ok(HttpClient { url: url.to_owned(), client, timeout })
    }

    /// The body of a successful answer to `GET path`.
    pub async fn get(&self, path: &str) -> Result<String, HttpError> {
        let fail = |problem: String| HttpError { url: self.url.clone(), what: path.to_owned(), problem };
        let request = http::Request::get(path).body(Vec::new()).map_err(|problem| fail(problem.to_string()))?;
        match timeout(self.timeout, self.client.request_text(request)).await {
            Ok(answer) => answer.map_err(|problem| fail(problem.to_string())),
            Err(_) => Err(fail(format!("no answer within {:?}", self.timeout))),
        }
    }

    /// The answer of Prometheus to an instant query.
    pub async fn query(&self, query: &str) -> Result<Value, HttpError> {
        let encoded: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let answer = self.get(&format!("/api/v1/query?query={encoded}")).await?;
        serde_json::from_str(&answer).map_err(|problem| HttpError {
            url: self.url.clone(),
            what: query.to_owned(),
            problem: format!("the answer is not JSON: {problem}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Where certificates of the system are looked for.
    const CERTIFICATES: &str = "SSL_CERT_FILE";

    /// As in an image with one file: this test starts itself again with a variable that leads nowhere.
    #[tokio::test]
    async fn without_certificates_of_the_system_plain_http_works_and_https_says_what_is_missing() {
        let name =
            "http_client::tests::without_certificates_of_the_system_plain_http_works_and_https_says_what_is_missing";
        let timeout = Duration::from_secs(1);
        if std::env::var_os(CERTIFICATES).is_none_or(|file| file != "/nowhere") {
            let mut again = Command::new(std::env::current_exe().unwrap());
            again.args(["--exact", name]).env(CERTIFICATES, "/nowhere").env_remove("SSL_CERT_DIR");
            let output = again.output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && told.contains("1 passed"), "{told}");
            return;
        }
        HttpClient::new("http://prometheus.monitoring.svc:9090", None, timeout).unwrap();
        let refused = HttpClient::new("https://prometheus.monitoring.svc:9091", None, timeout).unwrap_err().to_string();
        assert!(refused.contains("HTTPS needs CA certificates, and none could be loaded"), "{refused}");
        assert!(refused.ends_with(NAME_A_FILE), "{refused}");
    }
}
