//! Whether a descheduler shall run, and how.

use advisor::kube_descheduler::Release;

use super::{
    Policy, PolicyContext, PolicyError, Settings, Spec, names,
    sight::{Object, Sight},
};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    Run(Policy),
    /// Nothing shall run, for lack of an object or for this reason.
    Stop(Option<PolicyError>),
    /// What runs goes on as it is, and the object's status is left alone.
    Keep(PolicyError),
}

impl Verdict {
    pub(super) fn refusal(&self) -> Option<&PolicyError> {
        match self {
            Verdict::Run(_) => None,
            Verdict::Stop(refusal) => refusal.as_ref(),
            Verdict::Keep(refusal) => Some(refusal),
        }
    }
}

pub(super) fn verdict(sight: &Sight, settings: &Settings) -> Verdict {
    let Some(object) = &sight.object else { return Verdict::Stop(None) };
    match policy(object, sight, settings) {
        Ok(policy) => Verdict::Run(policy),
        Err(refusal) if refusal.scales_down() => Verdict::Stop(Some(refusal)),
        Err(refusal) => Verdict::Keep(refusal),
    }
}

fn policy(object: &Object, sight: &Sight, settings: &Settings) -> Result<Policy, PolicyError> {
    let spec = Spec::read(&object.spec)?;
    let context = PolicyContext {
        release: settings.release,
        prometheus_url: settings.prometheus_url.clone().unwrap_or_default(),
        protected: sight.protected.clone(),
        time_scale: settings.time_scale,
    };
    let policy = Policy::of(&spec, &context);
    // The operator looks at the cluster between what makes an object invalid and what it only logs.
    if policy.as_ref().is_err_and(PolicyError::scales_down) {
        return policy;
    }
    check_cluster(&spec, sight, settings)?;
    policy
}

/// What has to be there beside the object.
fn check_cluster(spec: &Spec, sight: &Sight, settings: &Settings) -> Result<(), PolicyError> {
    if let Some(profile) = spec.kubevirt_profile() {
        if sight.schedulable.is_empty() {
            return Err(PolicyError::NoKubeVirt(profile.to_owned()));
        }
        if settings.release >= Release::V4_19 && !settings.has_psi {
            return Err(PolicyError::NoPsi(profile.to_owned()));
        }
    }
    if spec.asks_prometheus(settings.release) {
        if settings.prometheus_url.is_none() {
            return Err(PolicyError::NoPrometheus);
        }
        if !sight.namespaces.get(names::NAMESPACE).copied().unwrap_or(false) {
            return Err(PolicyError::NotMonitored);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    /// As the plan writes it, with changes.
    fn sight(changes: &Value) -> Sight {
        let mut spec = json!({
            "profiles": ["KubeVirtRelieveAndMigrate"], "mode": "Automatic", "deschedulingIntervalSeconds": 60,
        });
        for (name, value) in changes.as_object().unwrap() {
            spec[name] = value.clone();
        }
        Sight {
            object: Some(Object { generation: 1, spec, ..Object::default() }),
            namespaces: [(names::NAMESPACE.to_owned(), true)].into(),
            schedulable: ["node-1".to_owned()].into(),
            ..Sight::default()
        }
    }

    fn settings() -> Settings {
        Settings { prometheus_url: Some("http://127.0.0.1:9090".into()), ..Settings::new("descheduler", "folder") }
    }

    #[test]
    fn without_an_object_nothing_runs_and_with_one_its_policy_does() {
        let unchanged = json!({});
        assert!(matches!(verdict(&sight(&unchanged), &settings()), Verdict::Run(_)));
        assert_eq!(verdict(&Sight { object: None, ..sight(&unchanged) }, &settings()), Verdict::Stop(None));
    }

    #[test]
    fn each_prerequisite_has_its_sentence() {
        let unchanged = sight(&json!({}));
        let no_nodes = Sight { schedulable: Default::default(), ..sight(&json!({})) };
        let no_psi = Settings { has_psi: false, ..settings() };
        let no_prometheus = Settings { prometheus_url: None, ..settings() };
        for (found, expected) in [
            (
                verdict(&no_nodes, &settings()),
                "profile KubeVirtRelieveAndMigrate can only be used when KubeVirt is properly deployed",
            ),
            (
                verdict(&unchanged, &no_psi),
                "profile KubeVirtRelieveAndMigrate can only be used when PSI metrics are enabled for the worker nodes",
            ),
            (verdict(&unchanged, &no_prometheus), "unable to get openshift-monitoring/prometheus-k8s route: "),
        ] {
            let Verdict::Stop(Some(refusal)) = found else { panic!("{found:?}") };
            assert!(refusal.to_string().starts_with(expected), "{refusal}");
        }
    }

    #[test]
    fn a_namespace_without_its_label_leaves_what_runs_alone() {
        for namespaces in [BTreeMap::new(), [(names::NAMESPACE.to_owned(), false)].into()] {
            let sight = Sight { namespaces, ..sight(&json!({})) };
            assert_eq!(verdict(&sight, &settings()), Verdict::Keep(PolicyError::NotMonitored));
        }
        assert_eq!(
            PolicyError::NotMonitored.to_string(),
            "namespace openshift-kube-descheduler-operator is not labeled with openshift.io/cluster-monitoring=true"
        );
    }

    #[test]
    fn the_cluster_comes_after_what_is_invalid_and_before_what_is_only_logged() {
        let no_psi = Settings { has_psi: false, ..settings() };
        let logged = sight(&json!({"profileCustomizations": {"devActualUtilizationProfile": "X"}}));
        assert!(matches!(verdict(&logged, &no_psi), Verdict::Stop(Some(PolicyError::NoPsi(_)))));
        assert_eq!(verdict(&logged, &settings()), Verdict::Keep(PolicyError::UnknownMetric("X".into())));
        let invalid = sight(&json!({"deschedulingIntervalSeconds": 0}));
        assert_eq!(verdict(&invalid, &no_psi), Verdict::Stop(Some(PolicyError::NoInterval)));
    }

    #[test]
    fn a_profile_without_virtual_machines_needs_none_of_that_unless_it_measures_load() {
        let bare = Settings { prometheus_url: None, has_psi: false, ..settings() };
        let nothing =
            |changes: &Value| Sight { schedulable: Default::default(), namespaces: BTreeMap::new(), ..sight(changes) };
        let long = json!({"profiles": ["LongLifecycle"]});
        assert!(matches!(verdict(&nothing(&long), &bare), Verdict::Run(_)));
        let measured = json!({
            "profiles": ["LongLifecycle"],
            "profileCustomizations": {"devActualUtilizationProfile": "PrometheusCPUUsage"},
        });
        assert_eq!(verdict(&nothing(&measured), &bare), Verdict::Stop(Some(PolicyError::NoPrometheus)));
        assert_eq!(verdict(&nothing(&measured), &settings()), Verdict::Keep(PolicyError::NotMonitored));
    }

    #[test]
    fn releases_before_4_19_do_not_look_at_pressure_and_need_prometheus_only_for_a_metric() {
        let bare = Settings { release: Release::V4_18, prometheus_url: None, has_psi: false, ..settings() };
        let former = json!({"profiles": ["DevKubeVirtRelieveAndMigrate"]});
        assert!(matches!(verdict(&sight(&former), &bare), Verdict::Run(_)));
        let next = Settings { release: Release::V4_19, ..bare };
        assert!(matches!(verdict(&sight(&former), &next), Verdict::Stop(Some(PolicyError::NoPsi(_)))));
    }
}
