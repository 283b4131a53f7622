//! Clients whose requests name the component that sends them.

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

/// A client that repeats failed requests as kube's own client does.
pub fn retrying_client(mut config: Config, component: &str) -> Result<Client> {
    set_user_agent(&mut config.headers, component).map_err(kube::Error::HttpError)?;
    Client::try_from(config)
}

/// A client that repeats no request, and sends each at once.
///
/// kube's own client leaves Nagle's algorithm on: a request waits until the previous bytes are acknowledged, up to 40 ms,
/// which is longer than most requests take. Through a proxy it is used all the same.
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
