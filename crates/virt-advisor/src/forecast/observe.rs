//! What is read of a cluster: the release of the descheduler, migrations, and the nodes that take virtual machines.

use advisor::{
    kind::{KUBE_DESCHEDULER, Kind},
    kube_descheduler::Release,
};
use api::VirtPlatformConfig;
use jiff::Timestamp;
use kube_io::Class;
use serde_json::Value;

use super::settings;
use crate::{drift, reader::Reader};

/// The migrations that evictions cause have names that begin with this.
const EVACUATION: &str = "kubevirt-evacuation-";
/// The priority of those whose eviction the descheduler has asked for.
const OF_THE_DESCHEDULER: &str = "system-maintenance";
const MIGRATIONS: &str = "/apis/kubevirt.io/v1/virtualmachineinstancemigrations";
const NODES: &str = "/api/v1/nodes";
/// KubeVirt sets it to true on nodes that take virtual machines.
const SCHEDULABLE: &str = "kubevirt.io/schedulable";
const CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/// The release of the descheduler's operator. None if its definition cannot be read.
pub(super) async fn release(reader: &Reader) -> Option<Release> {
    let Kind { plural, group, .. } = KUBE_DESCHEDULER;
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}");
    let definition = reader.get(&path).await.ok()?;
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    let version = versions.iter().find(|version| version["name"] == KUBE_DESCHEDULER.first_version())?;
    Some(Release::of(Some(version.pointer("/schema/openAPIV3Schema/properties/spec")?)))
}

/// The KubeDescheduler that a plan configures, as it is. None if there is none yet, and why that is not known.
pub(super) async fn descheduler(reader: &Reader, config: &VirtPlatformConfig) -> Result<Option<Value>, String> {
    match config.status.as_ref().and_then(settings::item) {
        Some(item) => drift::target(reader, &item.target_ref).await.map_err(|unread| unread.why),
        None => Ok(None),
    }
}

/// A migration that an eviction caused, and that has ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndedMigration {
    /// Namespace and name of the virtual machine.
    pub(super) vm: (String, String),
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    /// Whether the virtual machine is elsewhere now.
    pub(super) is_done: bool,
}

/// The migrations that evictions caused. None if KubeVirt is not served, and why they are not known.
pub(super) async fn migrations(reader: &Reader) -> Result<Option<Vec<EndedMigration>>, String> {
    let (found, _, _) = reader.pages(MIGRATIONS, ended).await;
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.class == Class::NotFound || error.class == Class::KindMissing => Ok(None),
        Err(error) => Err(format!("migrations: {}", crate::reader::why(&error.class))),
    }
}

/// Where KubeVirt gives migrations a priority, it tells an eviction by the descheduler from a drain.
fn ended(migration: &Value) -> Option<EndedMigration> {
    let word = |pointer: &str| migration.pointer(pointer).and_then(Value::as_str);
    let is_eviction = word("/metadata/name")?.starts_with(EVACUATION)
        && word("/spec/priority").is_none_or(|priority| priority == OF_THE_DESCHEDULER);
    let is_done = match word("/status/phase") {
        Some("Succeeded") => true,
        Some("Failed") => false,
        _ => return None,
    };
    let end = word("/status/migrationState/endTimestamp")?.parse().ok()?;
    let start = word("/status/migrationState/startTimestamp").and_then(|time| time.parse().ok()).unwrap_or(end);
    let vm = (word("/metadata/namespace")?.to_owned(), word("/spec/vmiName")?.to_owned());
    is_eviction.then_some(EndedMigration { vm, start, end, is_done })
}

/// A node that takes virtual machines, and the addresses that metrics may name instead.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct VmNode {
    pub(super) name: String,
    pub(super) addresses: Vec<String>,
}

/// A node that can be one.
struct Candidate {
    node: VmNode,
    is_labeled: bool,
    is_of_the_control_plane: bool,
}

/// The nodes that take virtual machines, and why that is not known.
pub(super) async fn nodes(reader: &Reader) -> Result<Vec<VmNode>, String> {
    let (found, _, _) = reader.pages(NODES, candidate).await;
    let found = found.map_err(|error| format!("nodes: {}", crate::reader::why(&error.class)))?;
    Some(chosen(found)).filter(|nodes| !nodes.is_empty()).ok_or_else(|| "nodes: none takes virtual machines".to_owned())
}

/// A cordoned node takes none.
fn candidate(object: &Value) -> Option<Candidate> {
    let labels = object.pointer("/metadata/labels");
    let label = |name: &str| labels.and_then(|labels| labels.get(name));
    let list = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let addresses = list("/status/addresses").filter(|address| address["type"] == "InternalIP");
    // Where an address has colons, it cannot be told from its port.
    let addresses = addresses.filter_map(|known| known["address"].as_str()).filter(|address| !address.contains(':'));
    let is_tainted = list("/spec/taints").any(|taint| CONTROL_PLANE.iter().any(|key| taint["key"] == **key));
    let name = object.pointer("/metadata/name")?.as_str()?.to_owned();
    let is_cordoned = object.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
    (!is_cordoned).then(|| Candidate {
        node: VmNode { name, addresses: addresses.map(str::to_owned).collect() },
        is_labeled: label(SCHEDULABLE).is_some_and(|value| value == "true"),
        is_of_the_control_plane: is_tainted && CONTROL_PLANE.iter().any(|name| label(name).is_some()),
    })
}

/// Those that KubeVirt names; without KubeVirt, those that are not reserved for the control plane, as in an imported scenario.
fn chosen(candidates: Vec<Candidate>) -> Vec<VmNode> {
    let is_told = candidates.iter().any(|candidate| candidate.is_labeled);
    let takes = |candidate: &Candidate| if is_told { candidate.is_labeled } else { !candidate.is_of_the_control_plane };
    candidates.into_iter().filter(takes).map(|candidate| candidate.node).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_migrations_count_that_evictions_of_the_descheduler_caused_and_that_have_ended() {
        let migration = |name: &str, phase: &str, priority: Option<&str>| {
            let state = json!({"startTimestamp": "2026-03-02T21:59:00Z", "endTimestamp": "2026-03-02T22:00:00Z"});
            json!({
                "metadata": {"namespace": "shop", "name": name}, "spec": {"vmiName": "web", "priority": priority},
                "status": {"phase": phase, "migrationState": state},
            })
        };
        let (start, end) = ("2026-03-02T21:59:00Z".parse().unwrap(), "2026-03-02T22:00:00Z".parse().unwrap());
        let expected = |is_done| Some(EndedMigration { vm: ("shop".into(), "web".into()), start, end, is_done });
        let of = |name: &str, phase: &str, priority| ended(&migration(name, phase, priority));
        assert_eq!(of("kubevirt-evacuation-x7", "Succeeded", None), expected(true));
        assert_eq!(of("kubevirt-evacuation-x7", "Succeeded", Some("system-maintenance")), expected(true));
        assert_eq!(of("kubevirt-evacuation-x7", "Failed", None), expected(false));
        assert_eq!(of("kubevirt-evacuation-x7", "Running", None), None);
        assert_eq!(of("kubevirt-evacuation-x7", "Succeeded", Some("system-critical")), None, "a drain");
        assert_eq!(of("by-hand", "Succeeded", None), None);
        assert_eq!(ended(&json!({})), None);
    }

    #[test]
    fn nodes_that_take_virtual_machines_are_open_and_not_of_the_control_plane() {
        let node = |name: &str, labels: Value, spec: Value| {
            let addresses =
                json!([{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "fd00::1"}]);
            json!({"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"addresses": addresses}})
        };
        let taint = |key: &str| json!({"taints": [{"key": key, "effect": "NoSchedule"}]});
        let mut nodes = vec![
            node("worker", json!({}), json!({})),
            node("cordoned", json!({}), json!({"unschedulable": true})),
            node("master", json!({CONTROL_PLANE[0]: ""}), taint(CONTROL_PLANE[0])),
            node("old-master", json!({CONTROL_PLANE[1]: ""}), taint(CONTROL_PLANE[1])),
            node("both", json!({CONTROL_PLANE[0]: ""}), json!({})),
            node("special", json!({}), taint("gpu")),
        ];
        let names = |nodes: &[Value]| {
            let found = chosen(nodes.iter().filter_map(candidate).collect());
            found.into_iter().map(|node| node.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&nodes), ["worker", "both", "special"]);
        nodes.push(node("kubevirt", json!({SCHEDULABLE: "true"}), json!({})));
        nodes.push(node("resting", json!({SCHEDULABLE: "true"}), json!({"unschedulable": true})));
        nodes.push(node("broken", json!({SCHEDULABLE: "false"}), json!({})));
        assert_eq!(names(&nodes), ["kubevirt"], "where KubeVirt says which ones take them, only those");
        assert_eq!(candidate(&nodes[0]).unwrap().node.addresses, ["10.0.0.1"]);
    }
}
