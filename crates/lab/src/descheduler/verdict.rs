//! Whether a descheduler shall run, and how.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Policy, Refusal, Settings, Spec, Surroundings};

/// What is known of the cluster.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// The KubeDescheduler, if there is one.
    pub(super) object: Option<Object>,
    /// All namespaces, and whether Prometheus looks at them.
    pub(super) namespaces: BTreeMap<String, bool>,
    /// The nodes that virtual machines can run on.
    pub(super) schedulable: BTreeSet<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Object {
    pub(super) generation: i64,
    pub(super) spec: Value,
    pub(super) status: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    Run(Policy),
    /// Nothing shall run, for lack of an object or for this reason.
    Stop(Option<Refusal>),
    /// What runs goes on as it is.
    Keep(Refusal),
}

impl Verdict {
    pub(super) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Verdict::Run(_) => None,
            Verdict::Stop(refusal) => refusal.as_ref(),
            Verdict::Keep(refusal) => Some(refusal),
        }
    }
}

/// `protected` are the namespaces whose pods stay.
pub(super) fn verdict(sight: &Sight, protected: &[String], settings: &Settings) -> Verdict {
    let Some(object) = &sight.object else { return Verdict::Stop(None) };
    match policy(object, sight, protected, settings) {
        Ok(policy) => Verdict::Run(policy),
        Err(refusal) if refusal.ends_what_runs() => Verdict::Stop(Some(refusal)),
        Err(refusal) => Verdict::Keep(refusal),
    }
}

fn policy(object: &Object, sight: &Sight, protected: &[String], settings: &Settings) -> Result<Policy, Refusal> {
    if !sight.namespaces.get(super::names::NAMESPACE).copied().unwrap_or(false) {
        return Err(Refusal::NotMonitored);
    }
    let spec = Spec::read(&object.spec)?;
    let policy = Policy::of(
        &spec,
        &Surroundings {
            prometheus_url: settings.prometheus_url.clone().unwrap_or_default(),
            protected: protected.to_vec(),
            time_scale: settings.time_scale,
        },
    )?;
    let Some(profile) = spec.kubevirt_profile() else { return Ok(policy) };
    if sight.schedulable.is_empty() {
        return Err(Refusal::NoKubeVirt(profile.to_owned()));
    }
    if !settings.has_psi {
        return Err(Refusal::NoPsi(profile.to_owned()));
    }
    settings.prometheus_url.as_ref().map(|_| policy).ok_or(Refusal::NoPrometheus)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::descheduler::names;

    fn sight() -> Sight {
        let spec = json!({
            "profiles": ["KubeVirtRelieveAndMigrate"], "mode": "Automatic", "deschedulingIntervalSeconds": 60,
        });
        Sight {
            object: Some(Object { generation: 1, spec, status: Value::Null }),
            namespaces: [(names::NAMESPACE.to_owned(), true)].into(),
            schedulable: ["node-1".to_owned()].into(),
        }
    }

    fn settings() -> Settings {
        Settings { prometheus_url: Some("http://127.0.0.1:9090".into()), ..Settings::new("descheduler", "folder") }
    }

    fn of(sight: &Sight, settings: &Settings) -> Verdict {
        verdict(sight, &[], settings)
    }

    #[test]
    fn without_an_object_nothing_runs_and_with_one_its_policy_does() {
        assert!(matches!(of(&sight(), &settings()), Verdict::Run(_)));
        assert_eq!(of(&Sight { object: None, ..sight() }, &settings()), Verdict::Stop(None));
    }

    #[test]
    fn each_prerequisite_has_its_sentence() {
        let profile = || "KubeVirtRelieveAndMigrate".to_owned();
        let no_nodes = Sight { schedulable: BTreeSet::new(), ..sight() };
        assert_eq!(of(&no_nodes, &settings()), Verdict::Stop(Some(Refusal::NoKubeVirt(profile()))));
        let no_psi = Settings { has_psi: false, ..settings() };
        assert_eq!(of(&sight(), &no_psi), Verdict::Stop(Some(Refusal::NoPsi(profile()))));
        let no_prometheus = Settings { prometheus_url: None, ..settings() };
        assert_eq!(of(&sight(), &no_prometheus), Verdict::Stop(Some(Refusal::NoPrometheus)));
        let sentences =
            [of(&no_nodes, &settings()), of(&sight(), &no_psi)].map(|verdict| verdict.refusal().unwrap().to_string());
        let [no_kubevirt, no_psi] = sentences;
        assert_eq!(
            no_kubevirt,
            "profile KubeVirtRelieveAndMigrate can only be used when KubeVirt is properly deployed"
        );
        assert_eq!(
            no_psi,
            "profile KubeVirtRelieveAndMigrate can only be used when PSI metrics are enabled for the worker nodes"
        );
    }

    #[test]
    fn a_namespace_without_its_label_leaves_what_runs_alone() {
        for namespaces in [BTreeMap::new(), [(names::NAMESPACE.to_owned(), false)].into()] {
            let sight = Sight { namespaces, ..sight() };
            assert_eq!(of(&sight, &settings()), Verdict::Keep(Refusal::NotMonitored));
        }
        assert_eq!(
            Refusal::NotMonitored.to_string(),
            "namespace openshift-kube-descheduler-operator is not labeled with openshift.io/cluster-monitoring=true"
        );
    }

    #[test]
    fn a_profile_without_virtual_machines_needs_none_of_that() {
        let mut sight = sight();
        sight.schedulable.clear();
        if let Some(object) = &mut sight.object {
            object.spec["profiles"] = json!(["LongLifecycle"]);
        }
        let bare = Settings { prometheus_url: None, has_psi: false, ..settings() };
        assert!(matches!(of(&sight, &bare), Verdict::Run(_)));
    }
}
