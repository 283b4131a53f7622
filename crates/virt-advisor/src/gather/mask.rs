//! Takes secrets out of collected objects. `managedFields` stay: they tell who set what.
//!
//! Of MachineConfigs only what is listed here is kept, so a field that nobody thought of is not handed on.

use advisor::{kind::MACHINE_CONFIG, object_text};
use serde_json::{Value, json};

const LEFT_OUT: &str = "left out: may hold secrets";
/// In place of the user and the password in a URL.
const MASK: &str = "***";
/// kubectl stores the whole applied object in it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// An object as it may be handed to others.
pub(crate) fn masked(object: Value) -> Value {
    let (object, _) = object_text::masked(Some(object), None);
    let mut object = object.unwrap_or_default();
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    if object["kind"] == MACHINE_CONFIG.kind {
        mask_machine_config(&mut object);
    }
    mask_urls(&mut object);
    object
}

/// A rendered MachineConfig has every file of a node in it, among them the pull secret of the cluster. Of others, the contents of
/// files and units are what a plan writes.
fn mask_machine_config(config: &mut Value) {
    let is_rendered = config["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("rendered-"));
    keep(config, "/spec", &["config", "extensions", "fips", "kernelArguments", "kernelType", "osImageURL"]);
    keep(config, "/spec/config", &["ignition", "storage", "systemd"]);
    keep(config, "/spec/config/ignition", &["version"]);
    keep(config, "/spec/config/storage", &["files"]);
    keep(config, "/spec/config/systemd", &["units"]);
    for file in each(config, "/spec/config/storage/files") {
        match is_rendered {
            true => keep(file, "", &["path"]),
            false => keep(file, "", &["contents", "mode", "overwrite", "path"]),
        }
        keep(file, "/contents", &["compression", "source"]);
    }
    for unit in each(config, "/spec/config/systemd/units").filter(|_| is_rendered) {
        keep(unit, "", &["dropins", "name"]);
        each(unit, "/dropins").for_each(|dropin| keep(dropin, "", &["name"]));
    }
}

/// Leaves out all members but these, and whatever is no object.
fn keep(value: &mut Value, pointer: &str, members: &[&str]) {
    match value.pointer_mut(pointer) {
        Some(Value::Object(map)) => {
            map.iter_mut()
                .filter(|(name, _)| !members.contains(&name.as_str()))
                .for_each(|(_, value)| leave_out(value));
        }
        Some(other) => leave_out(other),
        None => {}
    }
}

/// The entries of a list. Whatever is no list is left out.
fn each<'a>(value: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    let list = match value.pointer_mut(pointer) {
        Some(Value::Array(list)) => Some(list),
        Some(other) => {
            leave_out(other);
            None
        }
        None => None,
    };
    list.into_iter().flatten()
}

fn leave_out(value: &mut Value) {
    if !value.is_null() {
        *value = json!(LEFT_OUT);
    }
}

/// Masks who logs in at a URL, wherever there is one: variables of a container may name a proxy with its password.
fn mask_urls(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("://") => *text = without_logins(text),
        Value::Array(list) => list.iter_mut().for_each(mask_urls),
        Value::Object(map) => map.values_mut().for_each(mask_urls),
        _ => {}
    }
}

/// `http://user:password@proxy:3128` becomes `http://***@proxy:3128`.
fn without_logins(text: &str) -> String {
    let mut parts = text.split("://");
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|char: char| char.is_whitespace() || "/?#\"',<>".contains(char)).unwrap_or(part.len());
        let rest = part[..end].rfind('@').map_or(part, |at| &part[at..]);
        masked.push_str("://");
        masked.push_str(if rest.len() < part.len() { MASK } else { "" });
        masked.push_str(rest);
    }
    masked
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
                "annotations": {LAST_APPLIED: SECRET, "other": "kept"},
            },
            "data": {"token": SECRET}, "stringData": {"more": SECRET},
        });
        let masked = masked(secret.clone());
        assert!(!masked.to_string().contains(SECRET), "{masked:#}");
        assert_eq!(masked["metadata"]["managedFields"], secret["metadata"]["managedFields"]);
        assert_eq!(masked["metadata"]["annotations"]["other"], "kept");
        assert_eq!(masked["data"]["token"], "***");
        assert_eq!(masked["metadata"]["annotations"].get(LAST_APPLIED), None);
    }

    /// A config with everything that Ignition and the machine config operator know. What may be kept says so.
    fn machine_config(name: &str) -> Value {
        let resource = || json!({"source": format!("https://example.com/{SECRET}"), "httpHeaders": [{"name": "Authorization", "value": SECRET}]});
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": {"name": name, "annotations": {LAST_APPLIED: format!("{{\"passwordHash\":\"{SECRET}\"}}"), "other": "kept"}},
            "spec": {
                "kernelArguments": ["psi=1"],
                "kernelType": "default",
                "fips": true,
                "extensions": ["usbguard"],
                "osImageURL": "registry.example.com/os@sha256:0123",
                "new": SECRET,
                "config": {
                    "ignition": {
                        "version": "3.5.0",
                        "config": {"merge": [resource()], "replace": resource()},
                        "proxy": {"httpProxy": format!("http://user:{SECRET}@proxy")},
                        "security": {"tls": {"certificateAuthorities": [resource()]}},
                        "timeouts": {"httpTotal": SECRET},
                    },
                    "passwd": {
                        "users": [{"name": "core", "passwordHash": SECRET, "sshAuthorizedKeys": [SECRET]}],
                        "groups": [{"name": "wheel", "passwordHash": SECRET}],
                    },
                    "storage": {
                        "files": [{
                            "path": "/var/lib/kubelet/config.json", "mode": 384, "user": {"name": SECRET},
                            "contents": {"source": "data:,written", "httpHeaders": [{"name": "Cookie", "value": SECRET}]},
                            "append": [resource()],
                        }, SECRET],
                        "luks": [{"name": "root", "keyFile": resource(), "clevis": {"custom": {"config": SECRET}}}],
                        "disks": [{"device": SECRET}], "raid": [{"options": [SECRET]}], "filesystems": [{"options": [SECRET]}],
                        "directories": [{"path": SECRET}], "links": [{"target": SECRET}],
                    },
                    "systemd": {"units": [
                        {"name": "a.service", "contents": "written", "dropins": [{"name": "b.conf", "contents": "written"}]},
                    ], "new": SECRET},
                    "kernelArguments": {"shouldExist": [SECRET]},
                    "new": SECRET,
                },
            },
        })
    }

    /// The pull secret of the cluster is a file of every node.
    #[test]
    fn of_a_rendered_config_only_names_kernel_arguments_and_the_image_are_kept() {
        let masked = masked(machine_config("rendered-worker-1"));
        for secret in [SECRET, "written", LAST_APPLIED] {
            assert!(!masked.to_string().contains(secret), "{secret}: {masked:#}");
        }
        assert_eq!(masked["metadata"]["annotations"], json!({"other": "kept"}));
        for (pointer, kept) in [
            ("/spec/kernelArguments", json!(["psi=1"])),
            ("/spec/extensions", json!(["usbguard"])),
            ("/spec/osImageURL", json!("registry.example.com/os@sha256:0123")),
            ("/spec/config/ignition/version", json!("3.5.0")),
            ("/spec/config/storage/files/0/path", json!("/var/lib/kubelet/config.json")),
            ("/spec/config/storage/files/0/contents", json!(LEFT_OUT)),
            ("/spec/config/systemd/units/0/name", json!("a.service")),
            ("/spec/config/systemd/units/0/dropins/0/name", json!("b.conf")),
        ] {
            assert_eq!(masked.pointer(pointer), Some(&kept), "{pointer}");
        }
    }

    #[test]
    fn of_a_planned_config_the_files_and_units_are_kept_and_nothing_that_may_be_secret() {
        let config = machine_config("90-worker-kubelet-swap");
        let masked = masked(config.clone());
        assert!(!masked.to_string().contains(SECRET), "{masked:#}");
        for pointer in [
            "/spec/config/storage/files/0/path",
            "/spec/config/storage/files/0/mode",
            "/spec/config/storage/files/0/contents/source",
            "/spec/config/systemd/units",
        ] {
            assert_eq!(masked.pointer(pointer), config.pointer(pointer), "{pointer}");
        }
        assert_eq!(masked["spec"]["config"]["passwd"], LEFT_OUT);
    }

    #[test]
    fn a_list_that_is_none_is_left_out() {
        let files = json!({"kind": "MachineConfig", "spec": {"config": {"storage": {"files": {"a": SECRET}}}}});
        assert_eq!(masked(files)["spec"]["config"]["storage"]["files"], LEFT_OUT);
        let config = json!({"kind": "MachineConfig", "spec": {"config": SECRET}});
        assert_eq!(masked(config)["spec"]["config"], LEFT_OUT);
    }

    #[test]
    fn passwords_of_proxies_in_the_variables_of_a_container_are_masked() {
        let container = json!({
            "name": "manager",
            "args": [format!("--proxy=http://user:{SECRET}@proxy:3128")],
            "env": [
                {"name": "HTTPS_PROXY", "value": format!("http://user:{SECRET}@proxy.example.com:3128/")},
                {"name": "TWO", "value": format!("http://a:{SECRET}@b, https://{SECRET}@d?x=y@z")},
                {"name": "NO_PROXY", "value": ".cluster.local,10.0.0.0/16"},
            ],
        });
        let pod = json!({"kind": "Pod", "spec": {"containers": [container], "initContainers": [container]}});
        let deployment = json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": [container]}}}});
        for object in [pod, deployment] {
            let masked = masked(object);
            assert!(!masked.to_string().contains(SECRET), "{masked:#}");
            assert!(masked.to_string().contains("http://***@proxy.example.com:3128/"), "{masked:#}");
            assert!(masked.to_string().contains("https://***@d?x=y@z"), "{masked:#}");
        }
        for kept in ["https://example.com/a@b", "quay.io/a@sha256:1", "oci://example.com/a@sha256:1", "://", "a://b"] {
            assert_eq!(masked(json!({"a": kept})), json!({"a": kept}));
        }
    }

    #[test]
    fn other_objects_stay_as_they_are() {
        for object in [json!({"kind": "ConfigMap", "data": {"a": "b"}}), json!({"kind": "MachineConfig"}), json!(null)]
        {
            assert_eq!(masked(object.clone()), object);
        }
    }
}
