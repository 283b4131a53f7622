//! Clients whose requests name the component that sends them, and which notice connections that died without a word. Keepalive probes
//! notice firewalls and machines that vanish. For proxies that acknowledge what nobody reads, a connection is not reused after a rest,
//! and one with a watch has to bring something now and then.

use std::{sync::Arc, time::Duration};

use api::set_user_agent;
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Client as HyperClient, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config, Result,
    client::{Body, ClientBuilder, ConfigExt},
};
use tower::{BoxError, ServiceExt, util::option_layer};

use crate::observe::{ObserveLayer, Observer};

/// Keepalive probes begin after this rest, and follow at the next distance. They also keep a firewall from forgetting.
const KEEPALIVE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(7);
/// Together longer than a round trip on the slowest way that is supported, of 20 s.
const KEEPALIVE_RETRIES: u32 = 3;
const USER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a connection waits for the next request.
const IDLE: Duration = Duration::from_secs(10);

/// TCP and TLS together. On the slowest way that is supported, of 10 s per direction, they take 40 s.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(45);

/// How long a connection with a watch may bring nothing. Longer than a watch lasts ([`crate::ResilientWatch`]), and longer than a
/// round trip on the slowest way that is supported.
const WATCH_SILENCE: Duration = Duration::from_secs(25);

/// A client that repeats failed requests as kube's own client does.
pub fn retrying_client(mut config: Config, component: &str) -> Result<Client> {
    trust_nobody_for_plain_http(&mut config);
    set_user_agent(&mut config.headers, component).map_err(kube::Error::HttpError)?;
    Client::try_from(config)
}

/// A client that repeats no request, and sends each at once: with Nagle's algorithm, as in kube's own client, a request waits up to
/// 40 ms for an acknowledgment. Through a proxy kube's is used all the same.
pub fn client(config: Config, component: &str) -> Result<Client> {
    observed_client(config, component, Arc::new(()))
}

/// The same, with an observer of its requests.
pub(crate) fn observed_client(mut config: Config, component: &str, observer: Arc<dyn Observer>) -> Result<Client> {
    let observe = ObserveLayer(observer);
    trust_nobody_for_plain_http(&mut config);
    set_user_agent(&mut config.headers, component).map_err(kube::Error::HttpError)?;
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    if config.proxy_url.is_some() {
        return Ok(ClientBuilder::try_from(config)?.with_layer(&observe).build());
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    connector.set_keepalive_retries(Some(KEEPALIVE_RETRIES));
    connector.set_tcp_user_timeout(Some(USER_TIMEOUT));
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http: HyperClient<_, Body> = HyperClient::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .build(connector);
    let builder = ClientBuilder::new(http.map_err(BoxError::from), config.default_namespace.clone())
        .with_layer(&config.extra_headers_layer()?)
        .with_layer(&option_layer(config.auth_layer()?))
        .with_layer(&config.base_uri_layer())
        .with_layer(&observe);
    Ok(builder.build())
}

/// Without a CA of its own, a client loads those of the system, and fails where there are none, as in an image with one file.
/// Plain HTTP needs none.
fn trust_nobody_for_plain_http(config: &mut Config) {
    if config.cluster_url.scheme_str() == Some("http") {
        config.root_cert.get_or_insert_default();
    }
}

/// A client for watches that end soon enough: nothing else brings a byte now and then.
pub(crate) fn watch_client(mut config: Config, component: &str, observer: Arc<dyn Observer>) -> Result<Client> {
    config.read_timeout = Some(WATCH_SILENCE);
    config.reset_reader_on_write = true;
    observed_client(config, component, observer)
}
