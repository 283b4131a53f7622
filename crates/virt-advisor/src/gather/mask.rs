//! Takes secrets out of collected objects. `managedFields` stay: they tell who set what.

use advisor::{kind::MACHINE_CONFIG, render};
use serde_json::{Value, json};

const LEFT_OUT: &str = "left out: may hold secrets";

/// An object as it may be handed to others.
pub(crate) fn masked(object: Value) -> Value {
    let (object, _) = render::masked(Some(object), None);
    let mut object = object.unwrap_or_default();
    if object["kind"] == MACHINE_CONFIG.kind {
        mask_machine_config(&mut object);
    }
    object
}

/// A rendered MachineConfig has every file of a node in it, among them the pull secret of the cluster. Of others, the contents of
/// files are what a plan writes.
fn mask_machine_config(config: &mut Value) {
    let is_rendered = config["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("rendered-"));
    let Some(ignition) = config.pointer_mut("/spec/config") else { return };
    for user in entries(ignition, "/passwd/users") {
        for field in ["passwordHash", "sshAuthorizedKeys"] {
            if user.get(field).is_some() {
                user[field] = json!(LEFT_OUT);
            }
        }
    }
    if !is_rendered {
        return;
    }
    for file in entries(ignition, "/storage/files") {
        for field in ["contents", "append"] {
            if file.get(field).is_some() {
                file[field] = json!(LEFT_OUT);
            }
        }
    }
    for unit in entries(ignition, "/systemd/units") {
        if unit.get("contents").is_some() {
            unit["contents"] = json!(LEFT_OUT);
        }
        for dropin in entries(unit, "/dropins") {
            dropin["contents"] = json!(LEFT_OUT);
        }
    }
}

fn entries<'a>(value: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    value.pointer_mut(pointer).and_then(Value::as_array_mut).into_iter().flatten().filter(|entry| entry.is_object())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "s3cr3t";

    #[test]
    fn values_of_secrets_are_masked_and_their_managers_stay() {
        let secret = json!({
            "kind": "Secret",
            "metadata": {
                "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:data": {"f:token": {}}}}],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET, "other": "kept"},
            },
            "data": {"token": SECRET}, "stringData": {"more": SECRET},
        });
        let masked = masked(secret.clone());
        assert!(!masked.to_string().contains(SECRET), "{masked:#}");
        assert_eq!(masked["metadata"]["managedFields"], secret["metadata"]["managedFields"]);
        assert_eq!(masked["metadata"]["annotations"]["other"], "kept");
        assert_eq!(masked["data"]["token"], "***");
    }

    fn machine_config(name: &str) -> Value {
        json!({
            "kind": "MachineConfig", "metadata": {"name": name},
            "spec": {
                "kernelArguments": ["psi=1"],
                "config": {
                    "passwd": {"users": [{"name": "core", "passwordHash": SECRET, "sshAuthorizedKeys": [SECRET]}]},
                    "storage": {"files": [{"path": "/var/lib/kubelet/config.json", "contents": {"source": format!("data:,{SECRET}")}}]},
                    "systemd": {"units": [{"name": "a.service", "contents": SECRET, "dropins": [{"name": "b", "contents": SECRET}]}]},
                },
            },
        })
    }

    /// The pull secret of the cluster is a file of every node.
    #[test]
    fn of_a_rendered_config_only_paths_and_kernel_arguments_are_kept() {
        let masked = masked(machine_config("rendered-worker-1"));
        assert!(!masked.to_string().contains(SECRET), "{masked:#}");
        assert_eq!(masked["spec"]["kernelArguments"], json!(["psi=1"]));
        assert_eq!(masked["spec"]["config"]["storage"]["files"][0]["path"], "/var/lib/kubelet/config.json");
        assert_eq!(masked["spec"]["config"]["systemd"]["units"][0]["name"], "a.service");
    }

    #[test]
    fn of_a_planned_config_the_files_are_kept_and_passwords_are_not() {
        let masked = masked(machine_config("90-worker-kubelet-swap"));
        assert_eq!(masked["spec"]["config"]["storage"], machine_config("")["spec"]["config"]["storage"]);
        assert!(!masked["spec"]["config"]["passwd"].to_string().contains(SECRET), "{masked:#}");
    }

    #[test]
    fn other_objects_stay_as_they_are() {
        for object in [json!({"kind": "ConfigMap", "data": {"a": "b"}}), json!({"kind": "MachineConfig"}), json!(null)]
        {
            assert_eq!(masked(object.clone()), object);
        }
    }
}
