//! A client whose requests leave at once and say what has sent them.
//!
//! The client that kube builds by itself leaves Nagle's algorithm on: a request on a connection whose last bytes are not
//! acknowledged yet waits for that, and servers acknowledge after up to 40 ms. That is longer than most requests take.

use api::set_user_agent;
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Client, Config, Result,
    client::{Body, ClientBuilder, ConfigExt},
};
use tower::{BoxError, ServiceExt, util::option_layer};

/// Connects as `config` says, and retries nothing. Through a proxy it is kube's own client. `component` is the part of the
/// program that makes the requests.
pub fn client(mut config: Config, component: &str) -> Result<Client> {
    set_user_agent(&mut config.headers, component).map_err(kube::Error::HttpError)?;
    config.default_retry = false;
    if config.proxy_url.is_some() {
        return Client::try_from(config);
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http: HttpClient<_, Body> = HttpClient::builder(TokioExecutor::new()).build(connector);
    let builder = ClientBuilder::new(http.map_err(BoxError::from), config.default_namespace.clone())
        .with_layer(&config.extra_headers_layer()?)
        .with_layer(&option_layer(config.auth_layer()?))
        .with_layer(&config.base_uri_layer());
    Ok(builder.build())
}
