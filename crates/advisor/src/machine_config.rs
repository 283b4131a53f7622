//! What the machine config daemon does to a node when a MachineConfig changes.
//! Changes of some fields always cause a reboot. So do changes of files and units, unless the node disruption policy of the cluster
//! names a milder action for each of them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{Facts, ObjectRef, kind, pools::ROLE};

/// A change of any of these causes a reboot, whatever the policy says.
pub(crate) const ALWAYS_REBOOT: [&str; 6] =
    ["kernelArguments", "extensions", "fips", "kernelType", "osImageURL", "baseOSExtensionsContainerImage"];

/// What a change does to the nodes it reaches, from mild to severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disruption {
    /// Nothing changes.
    Unchanged,
    /// Files are written, nothing else happens.
    Written,
    /// Services are restarted or the node is drained, but stays up.
    Restarted,
    Rebooted,
}

/// The object that holds the node disruption policy.
pub fn policy() -> ObjectRef {
    ObjectRef::cluster(&kind::MACHINE_CONFIGURATION, "cluster")
}

/// The labels by which the pools of workers select a config.
pub(crate) fn worker_labels() -> Value {
    json!({ROLE: "worker"})
}

/// A MachineConfig for workers; without a spec, only what identifies it.
pub(crate) fn of_workers(name: &str, spec: Option<Value>) -> Value {
    let mut object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"labels": worker_labels(), "name": name},
    });
    if let Some(spec) = spec {
        object["spec"] = spec;
    }
    object
}

/// Compares two MachineConfigs; `None` is one that does not exist.
pub fn disruption(before: Option<&Value>, after: Option<&Value>, facts: &Facts) -> Disruption {
    let spec = |config: Option<&Value>| config.map_or(Value::Null, |config| config["spec"].clone());
    let (before, after) = (spec(before), spec(after));
    let differs = |field: &str| !same(&before[field], &after[field]);
    if ALWAYS_REBOOT.into_iter().any(differs) {
        return Disruption::Rebooted;
    }
    let (before, after) = (&before["config"], &after["config"]);
    if same(before, after) {
        return Disruption::Unchanged;
    }
    // The daemon refuses such a change. Assume the worst case.
    if !same(&others(before), &others(after)) {
        return Disruption::Rebooted;
    }
    let files = changed(before.pointer("/storage/files"), after.pointer("/storage/files"), "path");
    let units = changed(before.pointer("/systemd/units"), after.pointer("/systemd/units"), "name");
    let policies = facts.object(&policy()).and_then(|object| {
        // A policy that its controller has not observed yet does not count.
        let seen = object.pointer("/status/observedGeneration");
        let fresh = seen.is_some() && seen == object.pointer("/metadata/generation");
        object.pointer("/status/nodeDisruptionPolicyStatus/clusterPolicies").filter(|_| fresh)
    });
    let of_files = files.iter().map(|path| file_disruption(policies, path));
    let of_units = units.iter().map(|name| unit_disruption(policies, name));
    let keys_differ = !same(&before["passwd"], &after["passwd"]);
    let of_keys = keys_differ.then(|| actions(policies.and_then(|policies| policies.get("sshkey"))));
    // A change without a key cannot be looked up in the policy.
    let is_named = !files.is_empty() || !units.is_empty() || keys_differ;
    let disruption = of_files.chain(of_units).chain(of_keys).max().unwrap_or(Disruption::Written);
    if is_named { disruption } else { Disruption::Rebooted }
}

/// The other parts of an Ignition config: directories, disks and so on, which no policy covers. The version does not count, because
/// rendering converts all configs to the same version.
fn others(config: &Value) -> Value {
    let mut config = config.clone();
    for (part, list) in [("ignition", "version"), ("storage", "files"), ("systemd", "units")] {
        if let Some(map) = config.get_mut(part).and_then(Value::as_object_mut) {
            map.remove(list);
        }
    }
    if let Some(map) = config.as_object_mut() {
        map.remove("passwd");
        map.retain(|_, part| !same(part, &Value::Null));
    }
    config
}

/// Absent, null and empty mean the same to the daemon.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    let empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(_) => false,
    };
    a == b || (empty(a) && empty(b))
}

/// The keys of the entries that were added, removed or changed.
fn changed(before: Option<&Value>, after: Option<&Value>, key: &str) -> BTreeSet<String> {
    let index = |list: Option<&Value>| -> Map<String, Value> {
        let entries = list.and_then(Value::as_array).into_iter().flatten();
        entries.filter_map(|entry| Some((entry[key].as_str()?.to_owned(), entry.clone()))).collect()
    };
    let (before, after) = (index(before), index(after));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    keys.into_iter().filter(|key| before.get(*key) != after.get(*key)).cloned().collect()
}

/// The action of the policy with the longest path that is the file or a folder above it, the first of equally long ones.
fn file_disruption(policies: Option<&Value>, path: &str) -> Disruption {
    let entries = policies.and_then(|policies| policies["files"].as_array()).into_iter().flatten();
    let mut closest: Option<(usize, &Value)> = None;
    for entry in entries {
        let written = entry["path"].as_str().unwrap_or_default();
        let covers = written == path || is_below(path, written);
        if covers && closest.is_none_or(|(length, _)| written.len() > length) {
            closest = Some((written.len(), entry));
        }
    }
    actions(closest.map(|(_, entry)| entry))
}

/// Whether a file lies below a folder, ignoring repeated slashes. Nothing counts as below the root.
fn is_below(path: &str, folder: &str) -> bool {
    let parts = |path: &str| {
        path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect::<Vec<_>>()
    };
    let (path, folder) = (parts(path), parts(folder));
    !folder.is_empty() && path.len() > folder.len() && path.starts_with(&folder)
}

fn unit_disruption(policies: Option<&Value>, name: &str) -> Disruption {
    let mut entries = policies.and_then(|policies| policies["units"].as_array()).into_iter().flatten();
    actions(entries.find(|entry| entry["name"] == name))
}

/// Without a policy a node reboots. With a policy, only its actions happen; an unknown action counts as a reboot.
fn actions(policy: Option<&Value>) -> Disruption {
    let Some(policy) = policy else { return Disruption::Rebooted };
    let disruption = |action: &Value| match action["type"].as_str() {
        Some("None") => Disruption::Written,
        Some("Drain" | "Reload" | "Restart" | "DaemonReload" | "Special") => Disruption::Restarted,
        _ => Disruption::Rebooted,
    };
    let actions = policy["actions"].as_array().into_iter().flatten();
    actions.map(disruption).max().unwrap_or(Disruption::Written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Query};

    fn facts(policies: Value) -> Facts {
        let object = json!({
            "metadata": {"generation": 2},
            "status": {"observedGeneration": 2, "nodeDisruptionPolicyStatus": {"clusterPolicies": policies}},
        });
        Facts::of([(Query::Object(policy()), Answer::Object { version: "v1", object })])
    }

    fn config(spec: Value) -> Value {
        json!({"kind": "MachineConfig", "spec": spec})
    }

    fn file(path: &str, text: &str) -> Value {
        config(json!({"config": {"storage": {"files": [{"path": path, "contents": {"source": text}}]}}}))
    }

    #[test]
    fn what_changed_and_the_policy_decide_what_happens_to_a_node() {
        use Disruption::*;
        let policies = || {
            json!({
                "files": [
                    {"path": "/etc/a", "actions": [{"type": "None"}]},
                    {"path": "/etc/a/b", "actions": [{"type": "Restart"}, {"type": "DaemonReload"}]},
                    {"path": "/etc/r", "actions": [{"type": "Reboot"}]},
                ],
                "units": [{"name": "x.service", "actions": [{"type": "Restart"}]}],
            })
        };
        let unit = |name: &str| config(json!({"config": {"systemd": {"units": [{"name": name, "enabled": true}]}}}));
        let args = |list: &[&str]| config(json!({"kernelArguments": list}));
        let cases: Vec<(&str, Option<Value>, Option<Value>, Disruption)> = vec![
            ("a new argument", None, Some(args(&["psi=1"])), Rebooted),
            ("a removed argument", Some(args(&["psi=1"])), None, Rebooted),
            ("reordered arguments", Some(args(&["a", "b"])), Some(args(&["b", "a"])), Rebooted),
            ("the same arguments", Some(args(&["a"])), Some(args(&["a"])), Unchanged),
            ("an empty config", None, Some(config(json!({"kernelArguments": [], "fips": false}))), Unchanged),
            ("another kernel", None, Some(config(json!({"kernelType": "realtime"}))), Rebooted),
            ("a file without a policy", None, Some(file("/etc/other", "x")), Rebooted),
            ("a file whose name only begins like a policy", None, Some(file("/etc/abc", "x")), Rebooted),
            ("a file in a folder that needs nothing", None, Some(file("/etc/a/c", "x")), Written),
            ("the closest policy wins", None, Some(file("/etc/a/b", "x")), Restarted),
            ("a policy may ask for a reboot", None, Some(file("/etc/r", "x")), Rebooted),
            ("a changed file", Some(file("/etc/a", "x")), Some(file("/etc/a", "y")), Written),
            ("a removed file", Some(file("/etc/a", "x")), None, Written),
            ("a unit with a policy", None, Some(unit("x.service")), Restarted),
            ("a unit without", None, Some(unit("y.service")), Rebooted),
            (
                "a covered file, and users beside it",
                Some(file("/etc/a", "x")),
                Some({
                    let mut config = file("/etc/a", "y");
                    config["spec"]["config"]["passwd"] = json!({"users": [{"name": "core"}]});
                    config
                }),
                Rebooted,
            ),
            (
                "a covered file in a new config, with its version",
                None,
                Some({
                    let mut config = file("/etc/a", "y");
                    config["spec"]["config"]["ignition"] = json!({"version": "3.2.0"});
                    config
                }),
                Written,
            ),
            (
                "users, and no policy for keys",
                None,
                Some(config(json!({"config": {"passwd": {"users": [{"name": "core"}]}}}))),
                Rebooted,
            ),
            (
                "directories",
                None,
                Some(config(json!({"config": {"storage": {"directories": [{"path": "/etc/a"}]}}}))),
                Rebooted,
            ),
        ];
        for (case, before, after, expected) in cases {
            assert_eq!(disruption(before.as_ref(), after.as_ref(), &facts(policies())), expected, "{case}");
        }
    }

    #[test]
    fn without_a_policy_or_with_one_not_in_effect_yet_files_reboot() {
        let after = file("/etc/a", "x");
        assert_eq!(disruption(None, Some(&after), &Facts::default()), Disruption::Rebooted);
        let policies = json!({"files": [{"path": "/etc/a", "actions": [{"type": "None"}]}]});
        for (seen, expected) in
            [(json!(3), Disruption::Written), (json!(2), Disruption::Rebooted), (Value::Null, Disruption::Rebooted)]
        {
            let mut object = json!({
                "metadata": {"generation": 3},
                "status": {"nodeDisruptionPolicyStatus": {"clusterPolicies": policies}},
            });
            if !seen.is_null() {
                object["status"]["observedGeneration"] = seen.clone();
            }
            let facts = Facts::of([(Query::Object(policy()), Answer::Object { version: "v1", object })]);
            assert_eq!(disruption(None, Some(&after), &facts), expected, "{seen}");
        }
    }

    /// Real operators, seventh in rank: the daemon's own answers, case by case.
    #[test]
    fn policies_are_read_as_the_daemon_reads_them() {
        use Disruption::*;
        let none = || json!([{"type": "None"}]);
        let restart = || json!([{"type": "Restart", "restart": {"serviceName": "crio.service"}}]);
        let reboot = || json!([{"type": "Reboot"}]);
        let files = |list: &[(&str, Value)]| {
            let entry = |(path, actions): &(&str, Value)| json!({"path": path, "actions": actions});
            json!({"files": list.iter().map(entry).collect::<Vec<_>>()})
        };
        let units = |name: &str, actions: Value| json!({"units": [{"name": name, "actions": actions}]});
        let changed = || file("/etc/a/b", "x");
        let unit = || config(json!({"config": {"systemd": {"units": [{"name": "x.service", "enabled": true}]}}}));
        let keys = || config(json!({"config": {"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["k"]}]}}}));
        let both = || {
            let mut both = changed();
            both["spec"]["config"]["systemd"] = json!({"units": [{"name": "x.service", "enabled": true}]});
            both
        };
        let cases = [
            ("no policies", json!({}), changed(), Rebooted),
            ("the very path", files(&[("/etc/a/b", none())]), changed(), Written),
            ("another path", files(&[("/etc/a/c", none())]), changed(), Rebooted),
            ("a path that only begins alike", files(&[("/etc/a/bc", none())]), changed(), Rebooted),
            ("the folder above", files(&[("/etc/a", none())]), changed(), Written),
            ("the folder above, with a slash behind", files(&[("/etc/a/", none())]), changed(), Written),
            ("a folder far above, with slashes behind", files(&[("/etc//", restart())]), changed(), Restarted),
            ("the path with a slash behind is a folder", files(&[("/etc/a/b/", none())]), changed(), Rebooted),
            ("the root covers nothing", files(&[("/", none())]), changed(), Rebooted),
            ("the longest path wins", files(&[("/etc", reboot()), ("/etc/a", none())]), changed(), Written),
            ("in either order", files(&[("/etc/a", none()), ("/etc", reboot())]), changed(), Written),
            ("long by its slashes", files(&[("/etc/a", none()), ("/etc/a//", reboot())]), changed(), Rebooted),
            ("of equals the first", files(&[("/etc/a", none()), ("/etc/a", reboot())]), changed(), Written),
            ("no actions", files(&[("/etc/a", json!([]))]), changed(), Written),
            ("no list of actions", files(&[("/etc/a", Value::Null)]), changed(), Written),
            (
                "none beside others",
                files(&[("/etc/a", json!([{"type": "None"}, {"type": "Reload"}]))]),
                changed(),
                Restarted,
            ),
            (
                "a reboot beside others",
                files(&[("/etc/a", json!([{"type": "Restart"}, {"type": "Reboot"}]))]),
                changed(),
                Rebooted,
            ),
            ("a drain", files(&[("/etc/a", json!([{"type": "Drain"}]))]), changed(), Restarted),
            ("something special", files(&[("/etc/a", json!([{"type": "Special"}]))]), changed(), Restarted),
            ("a word of tomorrow", files(&[("/etc/a", json!([{"type": "Hibernate"}]))]), changed(), Rebooted),
            ("a unit by its name", units("x.service", restart()), unit(), Restarted),
            ("a unit without actions", units("x.service", json!([])), unit(), Written),
            ("a unit of another name", units("y.service", none()), unit(), Rebooted),
            ("one of two is not covered", files(&[("/etc/a", none())]), both(), Rebooted),
            ("keys", json!({"sshkey": {"actions": none()}}), keys(), Written),
            ("keys that restart something", json!({"sshkey": {"actions": restart()}}), keys(), Restarted),
        ];
        for (case, policies, after, expected) in cases {
            assert_eq!(disruption(None, Some(&after), &facts(policies)), expected, "{case}");
        }
    }
}
