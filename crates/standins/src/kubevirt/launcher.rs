//! virt-launcher pods: one for each guest, and a second one during a migration.

use kube::{ResourceExt, api::DynamicObject};
use serde_json::{Value, json};

use super::instance_view::{InstanceView, owner};
use crate::STAND_IN_LABEL;

pub(super) const SELECTOR: &str = "kubevirt.io=virt-launcher";
/// Keeps an evicted pod until its guest is shut down: there may be no kubelet that would wait for that.
const FINALIZER: &str = "advisor.kubevirt.io/kubevirt-stand-in";
const CREATED_BY: &str = "kubevirt.io/created-by";
const JOB: &str = "kubevirt.io/migrationJobUID";
pub(super) const DOMAIN: &str = "kubevirt.io/domain";
/// What KubeVirt takes where nothing is set, and what it adds.
const GRACE_SECONDS: u64 = 30;

/// A virt-launcher pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct Launcher<'a>(pub(super) &'a DynamicObject);

impl<'a> Launcher<'a> {
    /// The UID of its guest.
    pub(super) fn guest(self) -> Option<&'a str> {
        self.0.labels().get(CREATED_BY).map(String::as_str)
    }

    /// The UID of the migration that it was created for.
    pub(super) fn job(self) -> Option<&'a str> {
        self.0.labels().get(JOB).map(String::as_str)
    }

    pub(super) fn node(self) -> Option<&'a str> {
        self.0.data.pointer("/spec/nodeName").and_then(Value::as_str).filter(|node| !node.is_empty())
    }

    /// Whether the scheduler has not said yet where it runs, or that there is no place for it.
    pub(super) fn waits_for_scheduler(self) -> bool {
        let conditions = self.0.data.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let is_refused = conditions.filter(|it| it["type"] == "PodScheduled").any(|it| it["status"] == "False");
        self.node().is_none() && !self.is_ending() && !is_refused
    }

    pub(super) fn is_ending(self) -> bool {
        self.0.metadata.deletion_timestamp.is_some()
    }
}

/// The pod of a guest, on a node or where the scheduler puts it. `job` is the UID of the migration that it is the target of.
pub(super) fn pod(guest: InstanceView<'_>, node: Option<&str>, job: Option<&str>) -> Value {
    let key = guest.key();
    // The name is the same if the pod has to be created again after an answer was lost.
    let suffix: String = job.unwrap_or(guest.uid()).chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    let mut labels = guest.0.labels().clone();
    labels.remove("kubevirt.io/nodeName");
    labels.extend([("kubevirt.io", "virt-launcher"), (CREATED_BY, guest.uid()), (STAND_IN_LABEL, "true")].map(owned));
    labels.extend(job.map(|job| owned((JOB, job))));
    let spec = |pointer: &str| guest.spec(pointer).cloned();
    let memory = ["/domain/resources/requests/memory", "/domain/memory/guest"].into_iter().find_map(spec);
    let cpu = spec("/domain/resources/requests/cpu").unwrap_or_else(|| "100m".into());
    let grace = guest.spec("/terminationGracePeriodSeconds").and_then(Value::as_u64).unwrap_or(GRACE_SECONDS);
    let mut affinity = spec("/affinity").unwrap_or_else(|| json!({}));
    if job.is_some() {
        let terms = &mut affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        let mut own = terms.as_array().cloned().unwrap_or_default();
        own.push(json!({
            "labelSelector": {"matchLabels": {CREATED_BY: guest.uid()}}, "topologyKey": "kubernetes.io/hostname",
        }));
        *terms = own.into();
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("virt-launcher-{}-{suffix}", key.name), "namespace": key.namespace,
            "labels": labels, "annotations": {DOMAIN: key.name}, "finalizers": [FINALIZER],
            "ownerReferences": [owner(guest.0, "VirtualMachineInstance", "kubevirt.io/v1")],
        },
        "spec": {
            "nodeName": node,
            "nodeSelector": spec("/nodeSelector"), "tolerations": spec("/tolerations"), "affinity": affinity,
            "terminationGracePeriodSeconds": grace + GRACE_SECONDS,
            "containers": [{"name": "compute", "image": "none", "resources": {"requests": {"memory": memory, "cpu": cpu}}}],
        },
    })
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
