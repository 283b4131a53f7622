//! VirtPlatformConfig objects: how a test edits them, reads their status and waits for them.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use api::VirtPlatformConfig;
use futures::StreamExt;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, WatchEvent, WatchParams},
};
use serde_json::{Value, json};

use crate::{eventually, platform::Platform};

/// Less than the interval of rechecks: what a test waits for must not come from the next one.
const LIMIT: Duration = Duration::from_secs(100);
/// The pause between watches that cannot be opened.
const INTERVAL: Duration = Duration::from_millis(20);
/// Shorter than the time limit: a watch may end without a word when the API server is restarted.
const WATCH_SECONDS: u32 = 5;

/// A configuration named after its profile.
pub fn config(profile: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1",
        "kind": "VirtPlatformConfig",
        "metadata": {"name": profile},
        "spec": {"profile": profile},
    });
    if let Value::Object(spec) = spec {
        object["spec"].as_object_mut().unwrap().extend(spec);
    }
    object
}

pub fn phase(config: &Value) -> &str {
    config.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default()
}

pub fn condition<'a>(config: &'a Value, kind: &str) -> &'a Value {
    static NONE: Value = Value::Null;
    let conditions = config.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind).unwrap_or(&NONE)
}

/// An item of the plan, or null.
pub fn item<'a>(config: &'a Value, name: &str) -> &'a Value {
    static NONE: Value = Value::Null;
    let items = config.pointer("/status/items").and_then(Value::as_array);
    items.into_iter().flatten().find(|item| item["name"] == name).unwrap_or(&NONE)
}

/// The reason of a condition that is True, or an empty text.
pub fn reason<'a>(config: &'a Value, kind: &str) -> &'a str {
    let condition = condition(config, kind);
    if condition["status"] == "True" { condition["reason"].as_str().unwrap_or_default() } else { "" }
}

impl Platform {
    /// Edits the spec of a configuration, or creates it.
    pub async fn configure(&self, profile: &str, spec: Value) -> Value {
        let object = config(profile, spec);
        let path = format!("/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/{profile}");
        let exists = self.client.request::<Value>(http::Request::get(&path).body(Vec::new()).unwrap()).await.is_ok();
        match exists {
            true => self.patch("admin", &object).await,
            false => self.apply("admin", &object, "").await,
        }
    }

    pub async fn config(&self, profile: &str) -> Value {
        let path = format!("/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/{profile}");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        without_managed_fields(self.client.request(request).await.unwrap_or_default())
    }

    /// Waits until a configuration fulfills a condition. A missing one is null.
    pub async fn until(&self, profile: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let last = Mutex::new(Value::Null);
        let wait = async {
            loop {
                let config = self.config(profile).await;
                if holds(&config) {
                    return config;
                }
                let version = config.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
                let changed = self.watch(profile, version, &holds).await;
                *last.lock().unwrap_or_else(PoisonError::into_inner) = config;
                if let Some(config) = changed {
                    return config;
                }
                tokio::time::sleep(INTERVAL).await;
            }
        };
        let found = tokio::time::timeout(LIMIT, wait).await;
        found.unwrap_or_else(|_| {
            panic!("{profile} never was {what}: {:#}", last.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }

    /// Watches a configuration from a version on. Returns none when the watch ends before the condition is fulfilled.
    async fn watch(&self, profile: &str, version: &str, holds: impl Fn(&Value) -> bool) -> Option<Value> {
        let resource = ApiResource::erase::<VirtPlatformConfig>(&());
        let configs: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let params = WatchParams::default().fields(&format!("metadata.name={profile}")).timeout(WATCH_SECONDS);
        let mut events = std::pin::pin!(configs.watch(&params, version).await.ok()?);
        while let Some(Ok(event)) = events.next().await {
            let config = match event {
                WatchEvent::Added(config) | WatchEvent::Modified(config) => without_managed_fields(json!(config)),
                WatchEvent::Deleted(_) => Value::Null,
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(_) => return None,
            };
            if holds(&config) {
                return Some(config);
            }
        }
        None
    }

    /// Waits until the status is about the newest spec and has a phase.
    pub async fn until_phase(&self, profile: &str, wanted: &str) -> Value {
        let arrived = |config: &Value| {
            phase(config) == wanted
                && config.pointer("/status/observedGeneration") == config.pointer("/metadata/generation")
        };
        self.until(profile, wanted, arrived).await
    }

    /// Applies a profile and rolls out its machine configs, until the configuration is Completed and its record is closed.
    pub async fn complete(&self, profile: &str, mut spec: Value, configs: &[&str]) -> Value {
        spec["action"] = "Apply".into();
        self.configure(profile, spec).await;
        if !configs.is_empty() {
            self.until(profile, "waiting for nodes", is_waiting_for_nodes).await;
            self.roll(configs, 3).await;
        }
        let completed = self.until_phase(profile, "Completed").await;
        if let Some(name) = completed.pointer("/status/record/name").and_then(Value::as_str) {
            eventually("the record is closed", async || self.is_closed(name).await.then_some(())).await;
        }
        completed
    }

    /// Whether a record is finished, or does not exist.
    async fn is_closed(&self, name: &str) -> bool {
        let path = format!("/apis/advisor.kubevirt.io/v1alpha1/virtplatformplanrecords/{name}");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let record: Value = self.client.request(request).await.unwrap_or_default();
        record.is_null() || record.pointer("/status/finishedAt").is_some()
    }
}

/// Managed fields are long and no test reads them.
fn without_managed_fields(mut config: Value) -> Value {
    config.pointer_mut("/metadata/managedFields").map(Value::take);
    config
}

/// Whether all items are written and the pool has not begun to roll out.
pub fn is_waiting_for_nodes(config: &Value) -> bool {
    let items = config.pointer("/status/items").and_then(Value::as_array);
    let message = |item: &Value| item["message"].as_str().unwrap_or_default().to_owned();
    let begun = items.into_iter().flatten().any(|item| message(item).contains("is processing changes"));
    begun && phase(config) == "InProgress"
}
