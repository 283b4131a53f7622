//! Which objects are collected: those that the plans of configurations name, and nothing else of the cluster.

use std::collections::BTreeSet;

use advisor::{
    Kind, ObjectRef,
    kind::{MACHINE_CONFIG, MACHINE_CONFIG_POOL},
    profiles,
};
use api::virt_platform_config::TargetRef;
use serde_json::Value;

/// An object to collect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wanted {
    pub(crate) kind: &'static Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Wanted {
    pub(crate) fn cluster(kind: &'static Kind, name: &str) -> Self {
        Wanted { kind, namespace: None, name: name.to_owned() }
    }

    pub(crate) fn path(&self, version: &str) -> String {
        operator::object_path(self.kind, self.namespace.as_deref(), &self.name, version)
    }
}

impl From<&ObjectRef> for Wanted {
    fn from(object: &ObjectRef) -> Self {
        let namespace = object.namespace.map(str::to_owned);
        Wanted { kind: object.kind, namespace, name: object.name.clone() }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) objects: BTreeSet<Wanted>,
    /// Targets of kinds that no profile declares. They are told and not read: a status could name anything.
    pub(crate) unknown: BTreeSet<String>,
}

/// What configurations name: the targets and pools of their plans, and what their profiles read. A configuration that is ignored
/// and has no plan names nothing.
pub(crate) fn scope(configs: &[Value]) -> Scope {
    let mut scope = Scope::default();
    for config in configs {
        let items = items(config);
        if items.is_empty() && [None, Some("Ignored")].contains(&config["status"]["phase"].as_str()) {
            continue;
        }
        let profile = config["spec"]["profile"].as_str().or(config["metadata"]["name"].as_str());
        for access in profile.and_then(profiles::find).into_iter().flat_map(|profile| profile.access()) {
            scope.objects.extend(access.object().map(Wanted::from));
        }
        for item in items {
            if let Ok(target) = serde_json::from_value::<TargetRef>(item["targetRef"].clone()) {
                match kind_of(&target) {
                    Some(kind) => {
                        scope.objects.insert(Wanted { kind, namespace: target.namespace, name: target.name });
                    }
                    None => {
                        scope.unknown.insert(format!("{} {}", target.kind, target.name));
                    }
                }
            }
            scope.objects.extend(pools(item).map(|name| Wanted::cluster(&MACHINE_CONFIG_POOL, name)));
        }
    }
    scope
}

/// The rendered MachineConfigs of pools: what their nodes run, and what they shall run.
pub(crate) fn rendered(pools: &[&Value]) -> BTreeSet<Wanted> {
    let names = pools
        .iter()
        .flat_map(|pool| [&pool["status"]["configuration"]["name"], &pool["spec"]["configuration"]["name"]]);
    names.filter_map(Value::as_str).map(|name| Wanted::cluster(&MACHINE_CONFIG, name)).collect()
}

fn items(config: &Value) -> Vec<&Value> {
    config["status"]["items"].as_array().into_iter().flatten().collect()
}

fn pools(item: &Value) -> impl Iterator<Item = &str> {
    let impact = item["impactDetail"]["pools"].as_array().into_iter().flatten().map(|pool| &pool["name"]);
    let rollout = item["rollout"].as_array().into_iter().flatten().map(|pool| &pool["pool"]);
    impact.chain(rollout).filter_map(Value::as_str)
}

/// The kind of a target, if a profile declares it.
pub(crate) fn kind_of(target: &TargetRef) -> Option<&'static Kind> {
    known_kinds().into_iter().find(|kind| kind.kind == target.kind && is_of(kind, target))
}

fn known_kinds() -> BTreeSet<&'static Kind> {
    profiles::PROFILES.iter().flat_map(|profile| profile.access()).map(|access| access.kind()).collect()
}

fn is_of(kind: &Kind, target: &TargetRef) -> bool {
    let group = target.api_version.split_once('/').map_or("", |(group, _)| group);
    kind.group == group && kind.namespaced == target.namespace.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(profile: &str, phase: &str, items: Value) -> Value {
        json!({"metadata": {"name": profile}, "spec": {"profile": profile}, "status": {"phase": phase, "items": items}})
    }

    fn named(configs: &[Value]) -> Vec<String> {
        let scope = scope(configs);
        let spoken = |wanted: &Wanted| wanted.path(wanted.kind.versions[0]);
        scope.objects.iter().map(spoken).chain(scope.unknown).collect()
    }

    #[test]
    fn only_what_a_plan_names_is_collected() {
        let psi = json!({
            "targetRef": {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "name": "mine"},
            "impactDetail": {"pools": [{"name": "worker"}]},
            "rollout": [{"pool": "infra"}, {"pool": "worker"}],
        });
        let root = "/apis/machineconfiguration.openshift.io/v1";
        let named = named(&[config("load-aware-rebalancing", "InProgress", json!([psi]))]);
        for expected in [
            &format!("{root}/machineconfigs/mine"),
            &format!("{root}/machineconfigpools/worker"),
            &format!("{root}/machineconfigpools/infra"),
            &format!("{root}/machineconfigs/99-worker-psi-karg"),
            "/apis/operator.openshift.io/v1/namespaces/openshift-kube-descheduler-operator/kubedeschedulers/cluster",
            "/apis/hco.kubevirt.io/v1beta1/namespaces/openshift-cnv/hyperconvergeds/kubevirt-hyperconverged",
        ] {
            assert!(named.iter().any(|known| known == expected), "{expected} is not in {named:#?}");
        }
        assert!(!named.iter().any(|known| known.contains("kubelet-swap")), "another profile's: {named:#?}");
    }

    #[test]
    fn a_configuration_that_is_ignored_names_nothing_until_it_has_a_plan() {
        let example = "/api/v1/namespaces/openshift-cnv/configmaps/example-config";
        assert_eq!(named(&[config("example-profile", "Ignored", json!([]))]), [] as [&str; 0]);
        assert_eq!(named(&[json!({"metadata": {"name": "example-profile"}})]), [] as [&str; 0], "never looked at");
        let item = json!({"targetRef": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "openshift-cnv", "name": "example-config"}});
        assert_eq!(named(&[config("example-profile", "Ignored", json!([item]))]), [example]);
        assert_eq!(named(&[config("example-profile", "PrerequisiteFailed", json!([]))]), [example]);
    }

    #[test]
    fn a_kind_that_no_profile_declares_is_told_and_not_read() {
        let secret =
            json!({"targetRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "kube-system", "name": "admin"}});
        let other = json!({"targetRef": {"apiVersion": "evil/v1", "kind": "MachineConfig", "name": "x"}});
        let scope = scope(&[config("unknown", "InProgress", json!([secret, other, {"targetRef": 7}]))]);
        assert_eq!(scope.objects, BTreeSet::new());
        assert_eq!(scope.unknown.into_iter().collect::<Vec<_>>(), ["MachineConfig x", "Secret admin"]);
    }

    /// A status could name anything.
    #[test]
    fn a_name_leads_to_no_other_path() {
        let wanted = Wanted::cluster(&MACHINE_CONFIG, "a/../../../v1/secrets?x");
        let expected = "/apis/machineconfiguration.openshift.io/v1/machineconfigs/a%2F..%2F..%2F..%2Fv1%2Fsecrets%3Fx";
        assert_eq!(wanted.path("v1"), expected);
    }

    #[test]
    fn of_rendered_configs_those_that_a_pool_names_are_collected() {
        let pool = json!({"spec": {"configuration": {"name": "rendered-2"}}, "status": {"configuration": {"name": "rendered-1"}}});
        let names: Vec<_> = rendered(&[&pool, &json!({})]).into_iter().map(|wanted| wanted.name).collect();
        assert_eq!(names, ["rendered-1", "rendered-2"]);
    }
}
