//! Metrics of each replica of the operator, read from its pod, or of one of them through a forwarded port.
//! The API server's proxy does not hand on who asks, so an operator that asks for a token refuses it. The token is sent to nobody but a
//! server that proves by a certificate to be the operator.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use advisor::monitoring::SERVICE;
use anyhow::ensure;
use kube::{Config, config::AuthInfo};
use kube_io::{Class, RequestError, answer_within};
use serde_json::Value;

/// The CA of all certificates that OpenShift makes for Services, as it is in every pod.
const SERVICE_CA: &str = "/var/run/secrets/kubernetes.io/serviceaccount/service-ca.crt";

const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Debug, Default, clap::Args)]
pub(crate) struct PodMetricsArgs {
    /// The CA of the certificate of the operator's metrics, to read them from its pods with your token [default: in a pod of OpenShift, the CA of its Services]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    metrics_ca: Option<PathBuf>,
    /// Where `kubectl port-forward` lets you reach the operator's metrics, for example https://127.0.0.1:8443, instead of its pods
    #[arg(long, value_name = "URL", value_hint = clap::ValueHint::Url, value_parser = https, requires = "metrics_ca")]
    metrics_url: Option<String>,
    /// A file with a token that may read metrics [default: the token of your kubeconfig]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "metrics_ca")]
    metrics_token_file: Option<PathBuf>,
}

/// A token is sent only where a certificate is shown. The path is always that of the metrics.
fn https(url: &str) -> Result<String, String> {
    let base = url.trim_end_matches('/').trim_end_matches("/metrics").to_owned();
    let is_secure =
        base.parse::<http::Uri>().is_ok_and(|uri| uri.scheme_str() == Some("https") && uri.host().is_some());
    is_secure.then_some(base).ok_or_else(|| "must begin with https:// and name a host".into())
}

/// How to ask a pod for its metrics, for somebody who has a token and can tell the operator from others.
#[derive(Debug)]
pub(crate) struct PodMetrics {
    token: AuthInfo,
    ca: PathBuf,
    server_name: String,
    /// Where a port is forwarded to one of the pods.
    pub(super) forwarded: Option<String>,
}

impl PodMetrics {
    /// None without a token, or without a CA: the one that is named, or in a pod of OpenShift that of its Services.
    pub(crate) fn new(config: &Config, args: &PodMetricsArgs, namespace: &str) -> anyhow::Result<Option<Self>> {
        let of_services = || Some(PathBuf::from(SERVICE_CA)).filter(|path| path.is_file());
        let token = args.metrics_token_file.as_deref().map(token_in).or_else(|| token_of(&config.auth_info));
        ensure!(
            args.metrics_url.is_none() || token.is_some(),
            "--metrics-url needs a token, and you have none of your own in your kubeconfig: make one with `kubectl create token -n \
             {namespace} ACCOUNT > token`, and add --metrics-token-file token"
        );
        let known = args.metrics_ca.clone().or_else(of_services).zip(token);
        Ok(known.map(|(ca, token)| PodMetrics {
            token,
            ca,
            server_name: format!("{SERVICE}.{namespace}.svc"),
            forwarded: args.metrics_url.clone(),
        }))
    }

    /// The metrics of one pod.
    pub(crate) async fn read(&self, address: &str) -> Result<String, RequestError> {
        let doing = || format!("reading {address}/metrics");
        let failed = |error: String| RequestError::other(doing(), error, Class::Other);
        let mut config = Config::new(address.parse::<http::Uri>().map_err(|error| failed(error.to_string()))?);
        config.root_cert_file = Some(self.ca.clone());
        config.root_cert = Some(Vec::new());
        config.tls_server_name = Some(self.server_name.clone());
        config.auth_info = self.token.clone();
        let client = kube_io::connect::client(config, "gather").map_err(|error| failed(error.to_string()))?;
        let request = http::Request::get("/metrics").body(Vec::new()).map_err(|error| failed(error.to_string()))?;
        answer_within(DEADLINE, doing(), client.request_text(request)).await
    }
}

fn token_in(file: &Path) -> AuthInfo {
    AuthInfo { token_file: Some(file.to_string_lossy().into_owned()), ..AuthInfo::default() }
}

/// The token alone. Somebody who acts as another user has a token of the wrong user.
fn token_of(auth: &AuthInfo) -> Option<AuthInfo> {
    let has_token = (auth.token.is_some() || auth.token_file.is_some()) && auth.impersonate.is_none();
    has_token.then(|| AuthInfo {
        token: auth.token.clone(),
        token_file: auth.token_file.clone(),
        ..AuthInfo::default()
    })
}

/// Where a pod serves its metrics: its port of that name, by HTTPS.
pub(crate) fn address(pod: &Value) -> Option<String> {
    let ip: IpAddr = pod.pointer("/status/podIP")?.as_str()?.parse().ok()?;
    let containers = pod.pointer("/spec/containers")?.as_array()?;
    let mut ports = containers.iter().filter_map(|container| container["ports"].as_array()).flatten();
    let port = ports.find(|port| port["name"] == "metrics")?["containerPort"].as_u64()?;
    Some(format!("https://{}", std::net::SocketAddr::new(ip, u16::try_from(port).ok()?)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_is_asked_at_its_address_and_the_port_that_is_named_for_metrics() {
        let pod = |ip: &str| {
            json!({
                "spec": {"containers": [{"name": "manager", "ports": [
                    {"name": "probes", "containerPort": 8081}, {"name": "metrics", "containerPort": 8443},
                ]}]},
                "status": {"podIP": ip},
            })
        };
        assert_eq!(address(&pod("10.128.0.7")).as_deref(), Some("https://10.128.0.7:8443"));
        assert_eq!(address(&pod("fd01::7")).as_deref(), Some("https://[fd01::7]:8443"));
        assert_eq!(address(&pod("")), None, "it has no address yet");
        assert_eq!(address(&json!({"spec": {"containers": [{}]}, "status": {"podIP": "10.0.0.1"}})), None);
    }

    #[test]
    fn nothing_but_a_token_of_the_own_user_is_sent() {
        let auth = |user: Value| serde_json::from_value::<AuthInfo>(user).unwrap();
        let sent = token_of(&auth(json!({"token": "t", "client-key-data": "a2V5", "password": "p"}))).unwrap();
        assert!(sent.token.is_some() && sent.client_key_data.is_none() && sent.password.is_none());
        assert!(token_of(&auth(json!({"tokenFile": "/token"}))).is_some());
        for none in [json!({"client-key-data": "a2V5"}), json!({"token": "t", "as": "somebody"})] {
            assert!(token_of(&auth(none.clone())).is_none(), "{none}");
        }
    }

    #[test]
    fn without_a_certificate_authority_nobody_is_asked() {
        let mut config = Config::new("https://api.example.com".parse().unwrap());
        config.auth_info.token = Some("t".to_owned().into());
        let none = PodMetricsArgs::default();
        assert!(PodMetrics::new(&config, &none, "ns").unwrap().is_none(), "this is no pod of OpenShift");
        let named = PodMetricsArgs { metrics_ca: Some("ca.crt".into()), ..none };
        let known = PodMetrics::new(&config, &named, "ns").unwrap().unwrap();
        assert_eq!(known.server_name, "virt-advisor-operator-metrics.ns.svc");
    }

    #[test]
    fn a_forwarded_port_needs_a_token_and_a_certificate() {
        assert_eq!(https("https://127.0.0.1:8443").as_deref(), Ok("https://127.0.0.1:8443"));
        assert_eq!(https("https://127.0.0.1:8443/metrics/").as_deref(), Ok("https://127.0.0.1:8443"));
        for wrong in ["http://127.0.0.1:8443", "127.0.0.1:8443", "https://", ""] {
            assert!(https(wrong).is_err(), "{wrong}");
        }
        let config = Config::new("https://api.example.com".parse().unwrap());
        let mut args = PodMetricsArgs {
            metrics_ca: Some("ca.crt".into()),
            metrics_url: Some("https://127.0.0.1:8443".into()),
            metrics_token_file: None,
        };
        let error = PodMetrics::new(&config, &args, "ns").unwrap_err().to_string();
        assert!(error.contains("kubectl create token -n ns ACCOUNT > token"), "{error}");
        args.metrics_token_file = Some("token".into());
        let known = PodMetrics::new(&config, &args, "ns").unwrap().unwrap();
        assert_eq!((known.token.token_file.as_deref(), known.forwarded), (Some("token"), args.metrics_url));
    }
}
