//! VirtPlatformConfig objects: how a test edits them, reads their status and waits for them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::platform::Platform;

const LIMIT: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_millis(5);

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
        let mut config: Value = self.client.request(request).await.unwrap_or_default();
        // Managed fields are long and no test reads them.
        config.pointer_mut("/metadata/managedFields").map(Value::take);
        config
    }

    /// Waits until a configuration fulfills a condition.
    pub async fn until(&self, profile: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let config = self.config(profile).await;
            if holds(&config) {
                return config;
            }
            assert!(start.elapsed() < LIMIT, "{profile} never was {what}: {config:#}");
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// Waits until the status is about the newest spec and has a phase.
    pub async fn until_phase(&self, profile: &str, wanted: &str) -> Value {
        let arrived = |config: &Value| {
            phase(config) == wanted
                && config.pointer("/status/observedGeneration") == config.pointer("/metadata/generation")
        };
        self.until(profile, wanted, arrived).await
    }

    /// Applies a profile and rolls out its machine configs, until the configuration is Completed.
    pub async fn complete(&self, profile: &str, mut spec: Value, configs: &[&str]) -> Value {
        spec["action"] = "Apply".into();
        self.configure(profile, spec).await;
        if !configs.is_empty() {
            self.until(profile, "waiting for nodes", is_waiting_for_nodes).await;
            self.roll(configs, 3).await;
        }
        self.until_phase(profile, "Completed").await
    }
}

/// Whether all items are written and the pool has not begun to roll out.
pub fn is_waiting_for_nodes(config: &Value) -> bool {
    let items = config.pointer("/status/items").and_then(Value::as_array);
    let message = |item: &Value| item["message"].as_str().unwrap_or_default().to_owned();
    let begun = items.into_iter().flatten().any(|item| message(item).contains("is processing changes"));
    begun && phase(config) == "InProgress"
}
