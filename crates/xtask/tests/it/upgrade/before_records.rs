//! From the version before there were records of plans. Its definition is in the folder of the same name, and so is an object in each
//! phase. The objects were made by a newer operator; the API server prunes what that definition does not know: record, rollout, and
//! whatever else came later.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use testkit::{
    configs::{is_waiting_for_nodes, item, phase},
    eventually,
    files::documents,
    platform::{LOAD_AWARE, Platform, descheduler},
    rollout::PSI,
};

use super::{define, operator, store};
use crate::commands::root;

/// A profile that needs nothing of others.
const OTHER: &str = "example-profile";

/// The phase in which an object is found, and the one in which the new version leaves it.
const PHASES: [(&str, &str); 12] = [
    ("Pending", "ReviewRequired"),
    ("Drafting", "ReviewRequired"),
    ("PrerequisiteFailed", "PrerequisiteFailed"),
    ("ReviewRequired", "ReviewRequired"),
    ("Scheduled", "Scheduled"),
    ("InProgress", "InProgress"),
    ("Completed", "Completed"),
    ("CompletedWithErrors", "CompletedWithErrors"),
    ("CompletedWithUpgrade", "CompletedWithUpgrade"),
    ("Failed", "Failed"),
    ("Drifted", "Drifted"),
    ("Ignored", "Ignored"),
];

fn folder() -> PathBuf {
    root().join("crates/xtask/tests/it/upgrade/before_records")
}

fn old_definition() -> Vec<Value> {
    documents(&folder().join("virtplatformconfigs.yaml"))
}

/// A configuration and the objects of others that its plan was about, as they were stored.
struct Stored {
    config: Value,
    objects: Vec<Value>,
}

impl Stored {
    fn in_phase(name: &str) -> Stored {
        let text = fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        let mut stored: Value = serde_json::from_str(&text).unwrap();
        let objects = stored["objects"].as_array().unwrap().clone();
        Stored { config: stored["config"].take(), objects }
    }

    /// Puts all of this into a cluster that has the old definition, and no kind for records.
    async fn put(&self, platform: &Platform) {
        let records = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "virtplatformplanrecords.advisor.kubevirt.io"},
        });
        platform.delete(&records).await;
        let is_gone = async || platform.find(&records).await.is_none().then_some(());
        eventually("there is no kind for records", is_gone).await;
        define(platform, &old_definition()).await;
        for object in self.objects.iter().chain([&self.config]) {
            store(platform, object).await;
        }
        platform.operator().await;
    }
}

/// Checks every phase, each on a cluster as the old version has left it. It is given the phase that the new version is to leave.
async fn in_every_phase(check: impl AsyncFn(&Platform, &Stored, &str)) {
    let (platform, without_components) = (Platform::at_rest().await, Platform::with(&[]).await);
    for (before, after) in PHASES {
        let stored = Stored::in_phase(before);
        assert_eq!(phase(&stored.config), before);
        if before == "PrerequisiteFailed" {
            stored.put(&without_components).await;
            check(&without_components, &stored, after).await;
        } else {
            platform.install().await;
            platform.tidy_up().await;
            platform.populate().await;
            stored.put(&platform).await;
            check(&platform, &stored, after).await;
        }
    }
}

/// What a person has written, what was reviewed and what was applied is what it was.
fn assert_kept(before: &Value, after: &Value) {
    let case = phase(before);
    assert_eq!(after["spec"], before["spec"], "{case}");
    for field in ["uid", "generation", "annotations", "creationTimestamp"] {
        assert_eq!(after["metadata"][field], before["metadata"][field], "{case}: {field}");
    }
    let items = before["status"]["items"].as_array().cloned().unwrap_or_default();
    for was in &items {
        let is = item(after, was["name"].as_str().unwrap());
        for field in ["targetRef", "operation", "desiredState", "managedFields", "impactDetail", "appliedFingerprint"] {
            assert_eq!(is[field], was[field], "{case}: {field} of {}", was["name"]);
        }
    }
}

/// Waits until the operator has seen an edit of another configuration: it has looked at what was stored before, too.
async fn until_planned(platform: &Platform, action: &str) {
    platform.configure(OTHER, json!({"action": action})).await;
    let phase = if action == "Ignore" { "Ignored" } else { "ReviewRequired" };
    platform.until_phase(OTHER, phase).await;
}

/// Definitions first, as packages install them.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_stored_in_any_phase_is_kept_and_nothing_is_written() {
    in_every_phase(async |platform: &Platform, stored: &Stored, after: &str| {
        platform.install().await;
        let mark = platform.mark().await;
        let operator = operator(platform, "v0.2.0").await;
        until_planned(platform, "DryRun").await;
        let found = platform.until_phase(LOAD_AWARE, after).await;
        assert_kept(&stored.config, &found);
        assert_eq!(platform.changes_since(mark).await, [""; 0], "{after}");
        operator.stop().await;
    })
    .await;
}

/// The operator first: it runs on the old definition, which knows no records, until the definitions are upgraded.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_upgraded_before_its_definitions_waits_for_them() {
    in_every_phase(async |platform: &Platform, stored: &Stored, after: &str| {
        let mark = platform.mark().await;
        let operator = operator(platform, "v0.2.0").await;
        for action in ["DryRun", "Ignore"] {
            until_planned(platform, action).await;
            let found = platform.until_phase(LOAD_AWARE, after).await;
            assert_kept(&stored.config, &found);
            platform.install().await;
        }
        assert_eq!(platform.changes_since(mark).await, [""; 0], "{after}");
        operator.stop().await;
    })
    .await;
}

/// A rollout that the old version began is followed to its end, drift of what it applied is told, and a new plan has a record.
#[tokio::test(flavor = "multi_thread")]
async fn the_new_version_goes_on_with_what_the_old_one_began() {
    let stored = Stored::in_phase("InProgress");
    let platform = Platform::at_rest().await;
    stored.put(&platform).await;
    platform.install().await;
    let mark = platform.mark().await;
    let operator = operator(&platform, "v0.2.0").await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    platform.roll(&[PSI], 3).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(platform.changes_since(mark).await, [""; 0], "it was written before");
    platform.patch("kubectl-edit", &descheduler(json!({"deschedulingIntervalSeconds": 180}))).await;
    platform.until_phase(LOAD_AWARE, "Drifted").await;
    let again = json!({"action": "Apply", "waitTimeout": "2h"});
    let applied = platform.complete(LOAD_AWARE, again, &[]).await;
    assert_eq!(applied["status"]["record"]["name"], "load-aware-rebalancing-1");
    assert_eq!(platform.get(&descheduler(Value::Null)).await["spec"]["deschedulingIntervalSeconds"], 60);
    operator.stop().await;
}
