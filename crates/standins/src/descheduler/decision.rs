//! Whether a descheduler should run, and with which policy.

use advisor::kube_descheduler::Release;

use super::{
    DeschedulerSettings, Policy, PolicyContext, PolicyError, Spec, names,
    observed::{Object, Observed},
};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    Run(Policy),
    /// No descheduler: there is no object, or it has this error.
    Stop(Option<PolicyError>),
    /// The running descheduler keeps its policy, and the status is not written.
    Keep(PolicyError),
}

impl Decision {
    pub(super) fn policy_error(&self) -> Option<&PolicyError> {
        match self {
            Decision::Run(_) => None,
            Decision::Stop(error) => error.as_ref(),
            Decision::Keep(error) => Some(error),
        }
    }
}

pub(super) fn decide(observed: &Observed, settings: &DeschedulerSettings) -> Decision {
    let Some(object) = &observed.object else { return Decision::Stop(None) };
    match policy(object, observed, settings) {
        Ok(policy) => Decision::Run(policy),
        Err(error) if error.scales_down() => Decision::Stop(Some(error)),
        Err(error) => Decision::Keep(error),
    }
}

fn policy(object: &Object, observed: &Observed, settings: &DeschedulerSettings) -> Result<Policy, PolicyError> {
    let spec = Spec::read(&object.spec)?;
    let context = PolicyContext {
        release: settings.release,
        prometheus_url: settings.prometheus_url.clone().unwrap_or_default(),
        protected: observed.protected.clone(),
        time_scale: settings.time_scale,
    };
    let policy = Policy::of(&spec, &context);
    // The operator checks the cluster after the errors that scale down and before those that it only logs.
    if policy.as_ref().is_err_and(PolicyError::scales_down) {
        return policy;
    }
    check_cluster(&spec, observed, settings)?;
    policy
}

/// The prerequisites of the spec in the cluster.
fn check_cluster(spec: &Spec, observed: &Observed, settings: &DeschedulerSettings) -> Result<(), PolicyError> {
    if let Some(profile) = spec.kubevirt_profile() {
        if observed.schedulable.is_empty() {
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
        if !observed.namespaces.get(names::NAMESPACE).copied().unwrap_or(false) {
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

    /// A cluster with the KubeDescheduler of the plan, with changes.
    fn observed(changes: &Value) -> Observed {
        let mut spec = json!({
            "profiles": ["KubeVirtRelieveAndMigrate"], "mode": "Automatic", "deschedulingIntervalSeconds": 60,
        });
        for (name, value) in changes.as_object().unwrap() {
            spec[name] = value.clone();
        }
        Observed {
            object: Some(Object { generation: 1, spec, ..Object::default() }),
            namespaces: [(names::NAMESPACE.to_owned(), true)].into(),
            schedulable: ["node-1".to_owned()].into(),
            ..Observed::default()
        }
    }

    fn settings() -> DeschedulerSettings {
        DeschedulerSettings {
            prometheus_url: Some("http://127.0.0.1:9090".into()),
            ..DeschedulerSettings::new("descheduler", "folder")
        }
    }

    #[test]
    fn without_an_object_nothing_runs_and_with_one_its_policy_does() {
        let unchanged = json!({});
        assert!(matches!(decide(&observed(&unchanged), &settings()), Decision::Run(_)));
        assert_eq!(decide(&Observed { object: None, ..observed(&unchanged) }, &settings()), Decision::Stop(None));
    }

    #[test]
    fn each_prerequisite_has_its_message() {
        let unchanged = observed(&json!({}));
        let no_nodes = Observed { schedulable: Default::default(), ..observed(&json!({})) };
        let no_psi = DeschedulerSettings { has_psi: false, ..settings() };
        let no_prometheus = DeschedulerSettings { prometheus_url: None, ..settings() };
        for (found, expected) in [
            (
                decide(&no_nodes, &settings()),
                "profile KubeVirtRelieveAndMigrate can only be used when KubeVirt is properly deployed",
            ),
            (
                decide(&unchanged, &no_psi),
                "profile KubeVirtRelieveAndMigrate can only be used when PSI metrics are enabled for the worker nodes",
            ),
            (decide(&unchanged, &no_prometheus), "unable to get openshift-monitoring/prometheus-k8s route: "),
        ] {
            let Decision::Stop(Some(error)) = found else { panic!("{found:?}") };
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }

    #[test]
    fn without_the_label_of_the_namespace_the_running_descheduler_keeps_its_policy() {
        for namespaces in [BTreeMap::new(), [(names::NAMESPACE.to_owned(), false)].into()] {
            let observed = Observed { namespaces, ..observed(&json!({})) };
            assert_eq!(decide(&observed, &settings()), Decision::Keep(PolicyError::NotMonitored));
        }
        assert_eq!(
            PolicyError::NotMonitored.to_string(),
            "namespace openshift-kube-descheduler-operator is not labeled with openshift.io/cluster-monitoring=true"
        );
    }

    #[test]
    fn the_cluster_is_checked_after_errors_that_scale_down_and_before_those_that_are_only_logged() {
        let no_psi = DeschedulerSettings { has_psi: false, ..settings() };
        let logged = observed(&json!({"profileCustomizations": {"devActualUtilizationProfile": "X"}}));
        assert!(matches!(decide(&logged, &no_psi), Decision::Stop(Some(PolicyError::NoPsi(_)))));
        assert_eq!(decide(&logged, &settings()), Decision::Keep(PolicyError::UnknownMetric("X".into())));
        let invalid = observed(&json!({"deschedulingIntervalSeconds": 0}));
        assert_eq!(decide(&invalid, &no_psi), Decision::Stop(Some(PolicyError::NoInterval)));
    }

    #[test]
    fn a_profile_for_other_pods_has_no_prerequisites_unless_it_has_a_query() {
        let bare = DeschedulerSettings { prometheus_url: None, has_psi: false, ..settings() };
        let nothing = |changes: &Value| Observed {
            schedulable: Default::default(),
            namespaces: BTreeMap::new(),
            ..observed(changes)
        };
        let long = json!({"profiles": ["LongLifecycle"]});
        assert!(matches!(decide(&nothing(&long), &bare), Decision::Run(_)));
        let measured = json!({
            "profiles": ["LongLifecycle"],
            "profileCustomizations": {"devActualUtilizationProfile": "PrometheusCPUUsage"},
        });
        assert_eq!(decide(&nothing(&measured), &bare), Decision::Stop(Some(PolicyError::NoPrometheus)));
        assert_eq!(decide(&nothing(&measured), &settings()), Decision::Keep(PolicyError::NotMonitored));
    }

    #[test]
    fn releases_before_4_19_do_not_look_at_pressure_and_need_prometheus_only_for_a_metric() {
        let bare = DeschedulerSettings { release: Release::V4_18, prometheus_url: None, has_psi: false, ..settings() };
        let former = json!({"profiles": ["DevKubeVirtRelieveAndMigrate"]});
        assert!(matches!(decide(&observed(&former), &bare), Decision::Run(_)));
        let next = DeschedulerSettings { release: Release::V4_19, ..bare };
        assert!(matches!(decide(&observed(&former), &next), Decision::Stop(Some(PolicyError::NoPsi(_)))));
    }
}
