//! Answers the probes of a kubelet. Every replica does, the leader and those that wait to lead.

use std::net::{Ipv6Addr, SocketAddr};

use anyhow::Context;
use axum::{Router, http::StatusCode, routing::get};
use operator::Readiness;

/// `:8081` means all addresses, also where there is no IPv6, as people who know other operators expect.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let all = text.strip_prefix(':').map(|port| format!("[{}]:{port}", Ipv6Addr::UNSPECIFIED));
    all.as_deref().unwrap_or(text).parse().map_err(|_| "expected an address such as :8081 or 127.0.0.1:8081".to_owned())
}

/// Begins to listen. What is returned serves until it fails, or does nothing forever without an address.
pub(crate) async fn serve(
    address: Option<SocketAddr>,
    readiness: Readiness,
) -> anyhow::Result<impl Future<Output = anyhow::Error>> {
    let listener = match address {
        Some(address) => {
            Some(serving::listen(address).await.with_context(|| format!("answering probes on {address}"))?)
        }
        None => None,
    };
    Ok(async move {
        let Some(listener) = listener else { return std::future::pending().await };
        let ready = move || async move {
            match readiness.is_ready() {
                true => (StatusCode::OK, "ok\n"),
                false => (StatusCode::SERVICE_UNAVAILABLE, "the configurations are not known yet\n"),
            }
        };
        let probes = Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready));
        match axum::serve(listener, probes).await {
            Ok(()) => anyhow::anyhow!("the probes are no longer answered"),
            Err(error) => anyhow::Error::new(error).context("answering probes"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_other_operators_read_them() {
        assert_eq!(address(":8081"), Ok("[::]:8081".parse().unwrap()));
        assert_eq!(address("127.0.0.1:0"), Ok("127.0.0.1:0".parse().unwrap()));
        assert!(address("8081").is_err());
        assert!(address("").is_err());
    }
}
