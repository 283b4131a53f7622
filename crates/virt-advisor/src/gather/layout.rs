//! Where a file is among the collected ones: as in the archives of `oc adm must-gather` and `oc adm inspect`.

use super::scope::Wanted;

/// What is about the whole collection, or made by us, and not an object of the cluster.
pub(crate) const OWN: &str = "virt-advisor";

/// `cluster-scoped-resources/<group>/<resource>/<name>.yaml`, or in `namespaces/<namespace>/`.
pub(crate) fn object(wanted: &Wanted) -> String {
    let folder = folder(wanted.namespace.as_deref(), wanted.kind.group);
    format!("{folder}/{}/{}.yaml", wanted.kind.plural, segment(&wanted.name))
}

/// Objects of a kind that no profile declares, for example the operator's own pods.
pub(crate) fn other(namespace: &str, group: &str, resource: &str, name: &str) -> String {
    format!("{}/{resource}/{}.yaml", folder(Some(namespace), group), segment(name))
}

pub(crate) fn pod(namespace: &str, pod: &str) -> String {
    format!("namespaces/{}/pods/{pod}/{pod}.yaml", segment(namespace), pod = segment(pod))
}

/// `which` is `current` or `previous`.
pub(crate) fn log(namespace: &str, pod: &str, container: &str, which: &str) -> String {
    let (pod, container) = (segment(pod), segment(container));
    format!("namespaces/{}/pods/{pod}/{container}/{container}/logs/{which}.log", segment(namespace))
}

pub(crate) fn events(namespace: &str) -> String {
    format!("namespaces/{}/core/events.yaml", segment(namespace))
}

fn folder(namespace: Option<&str>, group: &str) -> String {
    let group = if group.is_empty() { "core" } else { group };
    match namespace {
        Some(namespace) => format!("namespaces/{}/{group}", segment(namespace)),
        None => format!("cluster-scoped-resources/{group}"),
    }
}

/// A name as one part of a path: it must not lead anywhere else.
pub(crate) fn segment(name: &str) -> String {
    let plain = name.replace(['/', '\\'], "_");
    if plain.starts_with('.') { format!("_{plain}") } else { plain }
}

#[cfg(test)]
mod tests {
    use advisor::kind::{CONFIG_MAP, MACHINE_CONFIG};

    use super::*;

    #[test]
    fn files_are_where_users_of_must_gather_look_for_them() {
        let config_map = Wanted { kind: &CONFIG_MAP, namespace: Some("n".into()), name: "a".into() };
        for (path, expected) in [
            (
                object(&Wanted::cluster(&MACHINE_CONFIG, "m")),
                "cluster-scoped-resources/machineconfiguration.openshift.io/machineconfigs/m.yaml",
            ),
            (object(&config_map), "namespaces/n/core/configmaps/a.yaml"),
            (other("n", "apps", "deployments", "d"), "namespaces/n/apps/deployments/d.yaml"),
            (pod("n", "p"), "namespaces/n/pods/p/p.yaml"),
            (log("n", "p", "c", "current"), "namespaces/n/pods/p/c/c/logs/current.log"),
            (events("default"), "namespaces/default/core/events.yaml"),
        ] {
            assert_eq!(path, expected);
        }
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        for name in ["..", "../../etc/passwd", ".hidden", "a/b"] {
            let path = object(&Wanted::cluster(&MACHINE_CONFIG, name));
            let part = path.rsplit('/').next().unwrap();
            assert!(path.matches('/').count() == 3 && !part.starts_with('.'), "{path}");
        }
    }
}
