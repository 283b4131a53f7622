//! The VirtPlatformConfigs themselves: their paths, and the watch on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    VirtPlatformConfig,
    names::{ADVISOR_GROUP, VERSION},
};
use http::Method;
use kube::{Api, Client, ResourceExt, core::DeserializeGuard, runtime::watcher};
use kube_io::{ApiServer, Change, Class, RequestError, WatchEvent};
use serde_json::{Value, json};

use crate::{
    Metrics, Readiness,
    malformed::Malformed,
    watch_settings::WatchSettings,
    work_queue::{ConfigState, WorkQueue},
};

/// The name of the resource.
pub(crate) const PLURAL: &str = "virtplatformconfigs";

pub(crate) fn collection(query: &str) -> String {
    format!("/apis/{ADVISOR_GROUP}/{VERSION}/{PLURAL}{query}")
}

pub(crate) fn object(name: &str, rest: &str) -> String {
    collection(&format!("/{name}{rest}"))
}

/// Replaces the status of a configuration, over the version that it carries. Returns the stored configuration.
pub(crate) async fn record(
    api_server: &ApiServer,
    name: &str,
    new: &VirtPlatformConfig,
) -> Result<VirtPlatformConfig, RequestError> {
    let uri = object(name, "/status?fieldManager=virt-advisor-operator");
    let doing = format!("recording the status of VirtPlatformConfig {name}");
    parse(name, api_server.send_body(Method::PUT, uri, "application/json", &json!(new), doing).await?)
}

pub(crate) async fn read(api_server: &ApiServer, name: &str) -> Result<VirtPlatformConfig, RequestError> {
    let doing = format!("reading VirtPlatformConfig {name}");
    parse(name, api_server.get(object(name, ""), doing).await?)
}

fn parse(name: &str, object: Value) -> Result<VirtPlatformConfig, RequestError> {
    let doing = || format!("reconciling VirtPlatformConfig {name}");
    serde_json::from_value(object).map_err(|error| RequestError::other(doing(), error.to_string(), Class::Other))
}

/// Watches all configurations and passes each to its reconciler. Objects that cannot be parsed go to `malformed`.
pub(crate) async fn watch(
    client: Client,
    queues: BTreeMap<&'static str, Arc<WorkQueue>>,
    malformed: Arc<Malformed>,
    readiness: Readiness,
    (metrics, watching): (Metrics, WatchSettings),
) {
    let api: Api<DeserializeGuard<VirtPlatformConfig>> = Api::all(client);
    let mut watch = watching.watch(api, watcher::Config::default());
    let mut existing: BTreeSet<String> = BTreeSet::new();
    loop {
        let WatchEvent::Change(change) = watch.next().await else {
            // Without the definition or the right to watch, there is nothing to do until that changes.
            readiness.set(false);
            continue;
        };
        let put = |name: &str, state: ConfigState| {
            malformed.forget(name);
            if let Some(queue) = queues.get(name) {
                match &state {
                    ConfigState::Present(config) => metrics.saw(config),
                    ConfigState::Absent => metrics.forget(name),
                }
                queue.put(|pending| pending.config = Some(state));
            }
        };
        match change {
            Change::Applied(found) => {
                existing.insert(found.name_any());
                match found.0 {
                    Ok(config) => put(&config.name_any(), ConfigState::Present(Arc::new(config))),
                    Err(invalid) => {
                        metrics.forget(&invalid.metadata.name.clone().unwrap_or_default());
                        malformed.put(invalid);
                    }
                }
            }
            Change::Deleted(key) => {
                existing.remove(&key.name);
                put(&key.name, ConfigState::Absent);
            }
            Change::Synced => {
                readiness.set(true);
                queues.keys().filter(|name| !existing.contains(**name)).for_each(|name| put(name, ConfigState::Absent));
            }
        }
    }
}
