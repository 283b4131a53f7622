//! What the machine config daemon does to a node when a MachineConfig changes.
//!
//! Some fields always mean a reboot. Files and units mean one too, unless the cluster's node disruption policy names
//! something milder for every one of them that changed.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{Facts, ObjectRef, kind};

/// A change of any of these reboots, whatever the policy says.
const ALWAYS_REBOOT: [&str; 6] =
    ["kernelArguments", "extensions", "fips", "kernelType", "osImageURL", "baseOSExtensionsContainerImage"];

/// What a change does to the nodes it reaches, from mild to harsh.
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
    if !same(&others(before), &others(after)) {
        return Disruption::Rebooted;
    }
    let files = changed(before.pointer("/storage/files"), after.pointer("/storage/files"), "path");
    let units = changed(before.pointer("/systemd/units"), after.pointer("/systemd/units"), "name");
    let policies = facts.object(&policy()).and_then(|object| {
        // A policy that its controller has not seen yet is not in force.
        let seen = object.pointer("/status/observedGeneration");
        let fresh = seen.is_some() && seen == object.pointer("/metadata/generation");
        object.pointer("/status/nodeDisruptionPolicyStatus/clusterPolicies").filter(|_| fresh)
    });
    let of_files = files.iter().map(|path| file_disruption(policies, path));
    let of_units = units.iter().map(|name| unit_disruption(policies, name));
    of_files.chain(of_units).max().unwrap_or(Disruption::Rebooted)
}

/// What an Ignition config holds besides files and units: users, directories and so on, which no policy covers. Its
/// version is not part of it, because rendering brings all configs to the same one.
fn others(config: &Value) -> Value {
    let mut config = config.clone();
    for (part, list) in [("ignition", "version"), ("storage", "files"), ("systemd", "units")] {
        if let Some(map) = config.get_mut(part).and_then(Value::as_object_mut) {
            map.remove(list);
        }
    }
    if let Some(map) = config.as_object_mut() {
        map.retain(|_, part| !same(part, &Value::Null));
    }
    config
}

/// Absent, null and empty mean the same to the daemon.
fn same(a: &Value, b: &Value) -> bool {
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

/// The policy with the longest path that is the file or a folder above it.
fn file_disruption(policies: Option<&Value>, path: &str) -> Disruption {
    let entries = policies.and_then(|policies| policies["files"].as_array()).into_iter().flatten();
    let covers = |policy: &str| path == policy || path.strip_prefix(policy).is_some_and(|rest| rest.starts_with('/'));
    let covering = entries.filter(|entry| entry["path"].as_str().is_some_and(covers));
    actions(covering.max_by_key(|entry| entry["path"].as_str().map_or(0, str::len)))
}

fn unit_disruption(policies: Option<&Value>, name: &str) -> Disruption {
    let mut entries = policies.and_then(|policies| policies["units"].as_array()).into_iter().flatten();
    actions(entries.find(|entry| entry["name"] == name))
}

fn actions(policy: Option<&Value>) -> Disruption {
    let Some(actions) = policy.and_then(|policy| policy["actions"].as_array()) else { return Disruption::Rebooted };
    let disruption = |action: &Value| match action["type"].as_str() {
        Some("None") => Disruption::Written,
        Some("Drain" | "Reload" | "Restart" | "DaemonReload" | "Special") => Disruption::Restarted,
        _ => Disruption::Rebooted,
    };
    actions.iter().map(disruption).max().unwrap_or(Disruption::Rebooted)
}

/// The value of a kernel argument that is in force: the last one wins.
pub fn kernel_argument<'a>(config: &'a Value, key: &str) -> Option<&'a str> {
    let arguments = config.pointer("/spec/kernelArguments")?.as_array()?;
    arguments.iter().rev().filter_map(Value::as_str).find_map(|argument| {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        (name == key).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
            ("users", None, Some(config(json!({"config": {"passwd": {"users": [{"name": "core"}]}}}))), Rebooted),
        ];
        for (case, before, after, expected) in cases {
            assert_eq!(disruption(before.as_ref(), after.as_ref(), &facts(policies())), expected, "{case}");
        }
    }

    #[test]
    fn without_a_policy_or_with_one_not_in_force_yet_files_reboot() {
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

    #[test]
    fn the_last_occurrence_of_a_kernel_argument_is_in_force() {
        for (arguments, value) in [
            (json!(["psi=1"]), Some("1")),
            (json!(["psi=1", "psi=0"]), Some("0")),
            (json!(["psi=0", "quiet", "psi=1"]), Some("1")),
            (json!(["psi"]), Some("")),
            (json!(["psi_cgroups=1"]), None),
            (json!([]), None),
            (Value::Null, None),
        ] {
            assert_eq!(kernel_argument(&config(json!({"kernelArguments": arguments})), "psi"), value, "{arguments}");
        }
    }
}
