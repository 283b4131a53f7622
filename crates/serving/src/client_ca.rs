//! The CA of client certificates, which the API server publishes for everybody who serves in the cluster.

use std::{sync::Arc, time::Duration};

use kube_io::{ApiServer, Class};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::tls::Tls;

const CONFIG_MAP: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const KEY: &str = "client-ca-file";

/// It changes once in years, and both the old and the new one count for a while.
const INTERVAL: Duration = Duration::from_secs(5 * 60);
const RETRY: Duration = Duration::from_secs(30);

/// Reads the CA now and from time to time. Without it, tokens still count.
pub(crate) async fn keep(api_server: ApiServer, tls: Arc<Tls>) {
    let mut known: Option<String> = None;
    let mut told: Option<String> = None;
    loop {
        let read = match read(&api_server).await {
            Ok(pem) if Some(&pem) == known.as_ref() => Ok(()),
            Ok(pem) => tls.set_client_ca(Some(&pem)).map_err(|error| error.to_string()).map(|()| {
                info!("client certificates are accepted");
                known = Some(pem);
            }),
            Err(error) => Err(error),
        };
        match read {
            Ok(()) => {
                told = None;
                sleep(INTERVAL).await;
            }
            Err(error) => {
                if told.as_ref() != Some(&error) {
                    let accepts = if known.is_some() { "as before" } else { "tokens only" };
                    warn!(error, accepts, "cannot read the CA of client certificates");
                    told = Some(error);
                }
                sleep(RETRY).await;
            }
        }
    }
}

async fn read(api_server: &ApiServer) -> Result<String, String> {
    let doing = "reading ConfigMap kube-system/extension-apiserver-authentication".to_owned();
    let found = match api_server.get(CONFIG_MAP.into(), doing).await {
        Ok(found) => found,
        Err(error) if error.class == Class::Forbidden => {
            return Err(format!(
                "{error}. Bind the Role extension-apiserver-authentication-reader of kube-system to the operator, as \
                 config/rbac does"
            ));
        }
        Err(error) => return Err(error.to_string()),
    };
    let pem = found["data"][KEY].as_str().filter(|pem| !pem.is_empty());
    pem.map(str::to_owned).ok_or_else(|| format!("the ConfigMap has no {KEY}: the API server accepts no certificates"))
}
