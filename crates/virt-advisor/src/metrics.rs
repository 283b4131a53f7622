//! The port of the metrics: `/metrics` for Prometheus, and `/loglevel`, because there is no shell in the image.

use std::{convert::Infallible, net::SocketAddr, path::PathBuf, sync::Arc};

use advisor::monitoring::SERVICE;
use anyhow::{Context, ensure};
use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use kube_io::ApiServer;
use operator::{Metrics, metrics::CONTENT_TYPE};
use process::logging::LogLevel;
use serving::{METRICS_PATH, PROMETHEUS, Protection, Secure, Server, is_loopback};
use tracing::info;

use crate::probes;

const LOG_LEVEL_PATH: &str = "/loglevel";
/// Bytes of a filter.
const LONGEST_FILTER: usize = 1024;

#[derive(clap::Args)]
pub(crate) struct MetricsArgs {
    /// Where to serve /metrics and /loglevel, as :8443 or 127.0.0.1:8443 [default: nowhere]
    #[arg(long, value_name = "ADDRESS", value_parser = probes::address)]
    metrics_bind_address: Option<SocketAddr>,
    /// Serve metrics by HTTPS, to those whom Kubernetes lets; false is for loopback addresses only, and lets everybody there
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    metrics_secure: bool,
    /// The folder of tls.crt and tls.key for HTTPS, read again when they change [default: the operator signs a certificate itself]
    #[arg(long, value_name = "FOLDER")]
    metrics_cert_dir: Option<PathBuf>,
    /// The common names of client certificates that may read metrics without a token, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = PROMETHEUS)]
    metrics_client_name: Vec<String>,
}

impl MetricsArgs {
    /// What can be wrong before anything is started.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let is_local = self.metrics_bind_address.is_none_or(is_loopback);
        ensure!(
            self.metrics_secure || is_local,
            "--metrics-secure=false is only for loopback addresses, such as --metrics-bind-address=127.0.0.1:8080"
        );
        Ok(())
    }

    /// Begins to listen. What is returned serves forever, or does nothing forever without an address.
    pub(crate) async fn serve(
        &self,
        metrics: &Metrics,
        log_level: LogLevel,
        api_server: &ApiServer,
        namespace: &str,
    ) -> anyhow::Result<impl Future<Output = Infallible> + use<>> {
        let server = match self.metrics_bind_address {
            Some(address) => {
                let protection = match self.metrics_secure {
                    false => Protection::Loopback,
                    true => Protection::Secure(Box::new(Secure {
                        certificates: self.metrics_cert_dir.clone(),
                        names: names(namespace, std::env::var("HOSTNAME").ok()),
                        client_names: self.metrics_client_name.clone(),
                        api_server: api_server.clone(),
                    })),
                };
                let server = Server::bind(address, routes(metrics.clone(), log_level), protection).await;
                let server = server.with_context(|| format!("serving metrics on {address}"))?;
                info!(address = %server.address()?, secure = self.metrics_secure, "serving metrics");
                Some(server)
            }
            None => None,
        };
        Ok(async move {
            match server {
                Some(server) => server.run().await,
                None => std::future::pending().await,
            }
        })
    }
}

/// Under which names the operator may be reached.
fn names(namespace: &str, host: Option<String>) -> Vec<String> {
    let service = [format!("{SERVICE}.{namespace}.svc"), format!("{SERVICE}.{namespace}.svc.cluster.local")];
    service.into_iter().chain(["localhost".to_owned(), "127.0.0.1".to_owned()]).chain(host).collect()
}

fn routes(metrics: Metrics, log_level: LogLevel) -> Router {
    let log_level_routes = get(show_level).put(set_level).with_state(Arc::new(log_level));
    Router::new()
        .route(METRICS_PATH, get(scrape).with_state(metrics))
        .route(LOG_LEVEL_PATH, log_level_routes)
        .layer(DefaultBodyLimit::max(LONGEST_FILTER))
}

async fn scrape(State(metrics): State<Metrics>) -> impl IntoResponse {
    match metrics.encode() {
        Ok(text) => (StatusCode::OK, [(header::CONTENT_TYPE, CONTENT_TYPE)], text),
        Err(error) => {
            let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
            (StatusCode::INTERNAL_SERVER_ERROR, plain, format!("{error}\n"))
        }
    }
}

async fn show_level(State(level): State<Arc<LogLevel>>) -> String {
    format!("{}\n", level.get())
}

/// Changes the level of this replica until it ends.
async fn set_level(State(level): State<Arc<LogLevel>>, filter: String) -> (StatusCode, String) {
    let before = level.get();
    // A level that hides the line below must not come unnoticed.
    info!(before, to = filter.trim(), "changing the log level");
    match level.set(&filter) {
        Ok(()) => {
            info!(before, to = level.get(), "the log level was changed");
            (StatusCode::OK, format!("{}\n", level.get()))
        }
        Err(error) => {
            let hint = "give error, warn, info, debug or trace, or a filter such as info,kube_io=debug";
            (StatusCode::BAD_REQUEST, format!("{error:#}; {hint}\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: MetricsArgs,
    }

    #[test]
    fn metrics_without_tls_are_for_loopback_addresses_only() {
        for (words, is_valid) in [
            (&[][..], true),
            (&["--metrics-bind-address=:8443"], true),
            (&["--metrics-bind-address=:8443", "--metrics-secure=true"], true),
            (&["--metrics-bind-address=:8443", "--metrics-secure=false"], false),
            (&["--metrics-bind-address=10.0.0.1:8443", "--metrics-secure=false"], false),
            (&["--metrics-bind-address=127.0.0.1:8443", "--metrics-secure=false"], true),
            (&["--metrics-bind-address=[::1]:8443", "--metrics-secure=false"], true),
            (&["--metrics-secure=false"], true),
        ] {
            let command = Command::parse_from([&["virt-advisor"], words].concat());
            assert_eq!(command.args.check().is_ok(), is_valid, "{words:?}");
        }
    }

    #[test]
    fn the_certificates_of_prometheus_count_unless_others_are_named() {
        let names = |words: &[&str]| Command::parse_from([&["virt-advisor"], words].concat()).args.metrics_client_name;
        assert_eq!(names(&[]), [PROMETHEUS]);
        assert_eq!(names(&["--metrics-client-name=a,b"]), ["a", "b"]);
    }

    #[test]
    fn a_certificate_of_our_own_names_the_service_and_the_pod() {
        let names = names("openshift-cnv", Some("virt-advisor-0".into()));
        let service = "virt-advisor-operator-metrics.openshift-cnv.svc";
        assert!([service, "localhost", "virt-advisor-0"].iter().all(|name| names.contains(&(*name).to_owned())));
    }
}
