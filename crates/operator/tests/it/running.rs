//! The operator in this process, and what a test does to configurations.

use std::time::{Duration, Instant};

use advisor::machine::Rhythm;
use operator::Settings;
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{ledger::Watchdog, platform::Platform};

const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(5);

/// The operator as the audit log knows it.
pub(crate) const OPERATOR: &str = "system:serviceaccount:openshift-cnv:controller-manager";

/// An operator under its own account, with the rights that it is installed with. It stops with the value.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    watchdog: Watchdog,
}

impl Running {
    pub(crate) async fn start(platform: &Platform) -> Running {
        Running::start_with(platform, Settings::default()).await
    }

    /// Looks again after this time, when nothing is heard; also for what is missing.
    pub(crate) async fn looking_every(platform: &Platform, interval: Duration) -> Running {
        let rhythm = Rhythm { recheck: interval, prerequisites: interval };
        Running::start_with(platform, Settings { rhythm, ..Settings::default() }).await
    }

    pub(crate) async fn start_with(platform: &Platform, settings: Settings) -> Running {
        let config = platform.cluster.access().config(&platform.operator().await).await.unwrap();
        let watchdog = platform.watchdog().await;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            operator::run(config, settings, async {
                let _ = stopped.await;
            })
            .await
            .unwrap();
        });
        Running { stop: Some(stop), task, watchdog }
    }

    /// Fails if the operator has tried what it has no right to.
    pub(crate) async fn stop(mut self) {
        self.end().await;
        self.watchdog.check().await;
    }

    /// The same without a look at its rights, for those who took some away.
    pub(crate) async fn end(&mut self) {
        let _ = self.stop.take().unwrap().send(());
        let task = std::mem::replace(&mut self.task, tokio::spawn(async {}));
        task.await.unwrap();
    }

    /// Whether it still works; it ends by itself only by a panic.
    pub(crate) fn is_alive(&self) -> bool {
        !self.task.is_finished()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A configuration by its profile.
pub(crate) fn config(profile: &str, spec: Value) -> Value {
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

pub(crate) fn phase(config: &Value) -> &str {
    config.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn condition<'a>(config: &'a Value, kind: &str) -> &'a Value {
    static NONE: Value = Value::Null;
    let conditions = config.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind).unwrap_or(&NONE)
}

/// An item of the plan, or nothing.
pub(crate) fn item<'a>(config: &'a Value, name: &str) -> &'a Value {
    static NONE: Value = Value::Null;
    let items = config.pointer("/status/items").and_then(Value::as_array);
    items.into_iter().flatten().find(|item| item["name"] == name).unwrap_or(&NONE)
}

/// The reason of a condition that holds, or nothing.
pub(crate) fn reason<'a>(config: &'a Value, kind: &str) -> &'a str {
    let condition = condition(config, kind);
    if condition["status"] == "True" { condition["reason"].as_str().unwrap_or_default() } else { "" }
}

/// Asks until there is an answer.
pub(crate) async fn eventually<T>(what: &str, probe: impl AsyncFn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = probe().await {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(POLL).await;
    }
}

impl Platform {
    /// Edits the spec of a configuration, or creates it.
    pub(crate) async fn configure(&self, profile: &str, spec: Value) -> Value {
        let object = config(profile, spec);
        let path = format!("/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/{profile}");
        let exists = self.client.request::<Value>(http::Request::get(&path).body(Vec::new()).unwrap()).await.is_ok();
        match exists {
            true => self.patch("admin", &object).await,
            false => self.apply("admin", &object, "").await,
        }
    }

    pub(crate) async fn config(&self, profile: &str) -> Value {
        let path = format!("/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/{profile}");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let mut config: Value = self.client.request(request).await.unwrap_or_default();
        // Who manages which field of it is of no interest, and long.
        config.pointer_mut("/metadata/managedFields").map(Value::take);
        config
    }

    /// Waits until a configuration is as described.
    pub(crate) async fn until(&self, profile: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let config = self.config(profile).await;
            if holds(&config) {
                return config;
            }
            assert!(start.elapsed() < PATIENCE, "{profile} never was {what}: {config:#}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until the operator has acted on the newest spec and arrived in a phase.
    pub(crate) async fn until_phase(&self, profile: &str, wanted: &str) -> Value {
        let arrived = |config: &Value| {
            phase(config) == wanted
                && config.pointer("/status/observedGeneration") == config.pointer("/metadata/generation")
        };
        self.until(profile, wanted, arrived).await
    }

    /// Applies a profile and rolls the nodes, until everything is in force.
    pub(crate) async fn complete(&self, profile: &str, mut spec: Value, configs: &[&str]) -> Value {
        spec["action"] = "Apply".into();
        self.configure(profile, spec).await;
        if !configs.is_empty() {
            self.until(profile, "waiting for nodes", is_waiting_for_nodes).await;
            self.roll(configs, 3).await;
        }
        self.until_phase(profile, "Completed").await
    }
}

/// Whether everything is written, and the pool has not begun.
pub(crate) fn is_waiting_for_nodes(config: &Value) -> bool {
    let items = config.pointer("/status/items").and_then(Value::as_array);
    let message = |item: &Value| item["message"].as_str().unwrap_or_default().to_owned();
    let begun = items.into_iter().flatten().any(|item| message(item).contains("is processing changes"));
    begun && phase(config) == "InProgress"
}
