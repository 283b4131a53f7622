//! A client for HTTP servers that are no API servers, such as the descheduler and Prometheus.

use std::{fmt, time::Duration};

use kube::{Client, Config};

use crate::{Class, RequestError, answer_within, connect, login::Login};

/// An image with one file has no CA certificates.
const NAME_A_FILE: &str = "name a file with the CA of the server in the variable SSL_CERT_FILE, or use http://";

/// A client of one server.
#[derive(Clone)]
pub struct HttpClient {
    /// The server in messages.
    server: String,
    client: Client,
    timeout: Duration,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpClient({})", self.server)
    }
}

impl HttpClient {
    /// `component` is the name of the sender. `certificate` is the one to trust, in DER, if the URL is one of HTTPS. Without it,
    /// those of the system are trusted.
    pub fn new(
        url: &str,
        component: &str,
        certificate: Option<Vec<u8>>,
        timeout: Duration,
    ) -> Result<HttpClient, RequestError> {
        let login = certificate.map(Login::trusting).unwrap_or_default();
        HttpClient::connect(url.to_owned(), url, component, login, timeout)
    }

    /// `server` is the name of the server in messages.
    pub(crate) fn connect(
        server: String,
        url: &str,
        component: &str,
        login: Login,
        timeout: Duration,
    ) -> Result<HttpClient, RequestError> {
        let fail = |problem: String| RequestError::other(format!("connecting to {server}"), problem, Class::Other);
        let parsed = url.trim_end_matches('/').parse::<http::Uri>();
        let mut config = Config::new(parsed.map_err(|problem| fail(format!("this is no URL: {problem}")))?);
        let trusts_the_system = login.trusted.is_none();
        config.root_cert = login.trusted;
        config.auth_info = login.auth;
        let client = connect::client(config, component).map_err(|problem| match problem {
            kube::Error::RustlsTls(problem) if trusts_the_system => {
                fail(format!("HTTPS needs CA certificates, and none could be loaded: {problem}; {NAME_A_FILE}"))
            }
            problem => fail(problem.to_string()),
        })?;
        Ok(HttpClient { server, client, timeout })
    }

    /// The body of a successful answer to `GET path`.
    pub async fn get(&self, path: &str) -> Result<String, RequestError> {
        self.ask(path, path).await
    }

    /// The same. `what` says in an error what was asked for.
    pub(crate) async fn ask(&self, path: &str, what: &str) -> Result<String, RequestError> {
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|problem| self.failed(what, problem))?;
        answer_within(self.timeout, self.doing(what), self.client.request_text(request)).await
    }

    fn doing(&self, what: &str) -> String {
        format!("asking {} for {what}", self.server)
    }

    pub(crate) fn failed(&self, what: &str, problem: impl fmt::Display) -> RequestError {
        RequestError::other(self.doing(what), problem.to_string(), Class::Other)
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
        HttpClient::new("http://prometheus.monitoring.svc:9090", "test", None, timeout).unwrap();
        let refused = HttpClient::new("https://prometheus.monitoring.svc:9091", "test", None, timeout);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("HTTPS needs CA certificates, and none could be loaded"), "{refused}");
        assert!(refused.ends_with(NAME_A_FILE), "{refused}");
    }
}
