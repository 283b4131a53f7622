//! The operator's profiles, and the descheduler's plugins that each stands for.

use serde_json::{Value, json};

use super::{Limits, Surroundings, Thresholds, utilization};
use crate::descheduler::{Refusal, Spec};

/// The profile of virtual machines, under its name and the name it had before.
pub(super) const KUBEVIRT: [&str; 2] = ["KubeVirtRelieveAndMigrate", "DevKubeVirtRelieveAndMigrate"];

const AFFINITY: &str = "AffinityAndTaints";
const TOPOLOGY: &str = "TopologyAndDuplicates";
const SOFT_TOPOLOGY: &str = "SoftTopologyAndDuplicates";
const LONG: [&str; 2] = ["LongLifecycle", "DevPreviewLongLifecycle"];
const LIFECYCLE: &str = "LifecycleAndUtilization";
const COMPACT: &str = "CompactAndScale";
const LOCAL_STORAGE: &str = "EvictPodsWithLocalStorage";
const PVC: &str = "EvictPodsWithPVC";

const EXCLUSIVE: [(&str, &str); 17] = [
    (KUBEVIRT[0], KUBEVIRT[1]),
    (KUBEVIRT[0], LONG[0]),
    (KUBEVIRT[0], LONG[1]),
    (KUBEVIRT[0], LIFECYCLE),
    (KUBEVIRT[0], COMPACT),
    (KUBEVIRT[1], LONG[0]),
    (KUBEVIRT[1], LONG[1]),
    (KUBEVIRT[1], LIFECYCLE),
    (KUBEVIRT[1], COMPACT),
    (LONG[0], LIFECYCLE),
    (LONG[1], LIFECYCLE),
    (LONG[0], LONG[1]),
    (SOFT_TOPOLOGY, TOPOLOGY),
    (COMPACT, LIFECYCLE),
    (COMPACT, LONG[0]),
    (COMPACT, LONG[1]),
    (COMPACT, TOPOLOGY),
];

/// Whether these profiles exist and go together.
pub(super) fn check(profiles: &[String]) -> Result<(), Refusal> {
    let known = [AFFINITY, TOPOLOGY, SOFT_TOPOLOGY, LIFECYCLE, COMPACT, LOCAL_STORAGE, PVC];
    let is_known = |name: &str| known.contains(&name) || KUBEVIRT.contains(&name) || LONG.contains(&name);
    let has = |name: &str| profiles.iter().any(|listed| listed == name);
    if profiles.is_empty() {
        return Err(Refusal::NoProfile);
    }
    for (at, name) in profiles.iter().enumerate() {
        if !is_known(name) {
            return Err(Refusal::UnknownProfile(name.clone()));
        }
        if profiles[..at].contains(name) {
            return Err(Refusal::Duplicate(name.clone()));
        }
    }
    if let Some((one, other)) = EXCLUSIVE.into_iter().find(|(one, other)| has(one) && has(other)) {
        return Err(Refusal::Exclusive(one.to_owned(), other.to_owned()));
    }
    match [LIFECYCLE, COMPACT].into_iter().find(|name| has(name)) {
        Some(name) => Err(Refusal::NotPlayed(name.to_owned())),
        None => Ok(()),
    }
}

/// The `profiles` of the policy, in the order of the spec.
pub(super) fn render(spec: &Spec, limits: Limits, surroundings: &Surroundings) -> Result<Vec<Value>, Refusal> {
    let mut profiles = Vec::new();
    for name in &spec.profiles {
        profiles.extend(profile(name, spec, limits, surroundings)?);
    }
    Ok(profiles)
}

fn profile(name: &str, spec: &Spec, limits: Limits, surroundings: &Surroundings) -> Result<Option<Value>, Refusal> {
    let namespaces = namespaces(spec, surroundings);
    Ok(Some(match name {
        _ if KUBEVIRT.contains(&name) => kubevirt(spec, limits, surroundings)?,
        AFFINITY => {
            let affinity = json!({
                "namespaces": namespaces,
                "nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"],
            });
            let plain = json!({"namespaces": namespaces});
            let plugins = [
                ("RemovePodsViolatingInterPodAntiAffinity", plain.clone()),
                ("RemovePodsViolatingNodeTaints", plain),
                ("RemovePodsViolatingNodeAffinity", affinity),
            ];
            assemble(name, &plugins, &[], evictor(name, spec))
        }
        TOPOLOGY | SOFT_TOPOLOGY => {
            let constraints: &[&str] =
                if name == TOPOLOGY { &["DoNotSchedule"] } else { &["DoNotSchedule", "ScheduleAnyway"] };
            let spread = json!({"namespaces": namespaces, "constraints": constraints});
            let plugins = [
                ("RemovePodsViolatingTopologySpreadConstraint", spread),
                ("RemoveDuplicates", json!({"namespaces": namespaces})),
            ];
            assemble(name, &[], &plugins, evictor(name, spec))
        }
        _ if LONG.contains(&name) => {
            let wanted = spec.profile_customizations.dev_low_node_utilization_thresholds.as_deref().unwrap_or_default();
            let mut utilization = Thresholds::by_name(wanted)?.arguments(&["cpu", "memory", "pods"]);
            utilization["evictableNamespaces"] = json!({"exclude": excluded(spec, surroundings)});
            let restarts =
                json!({"namespaces": namespaces, "podRestartThreshold": 100, "includingInitContainers": true});
            let restarts = [("RemovePodsHavingTooManyRestarts", restarts)];
            assemble(name, &restarts, &[("LowNodeUtilization", utilization)], evictor(name, spec))
        }
        // The rest changes what the other profiles may evict.
        _ => return Ok(None),
    }))
}

/// Always under the name of today.
fn kubevirt(spec: &Spec, limits: Limits, surroundings: &Surroundings) -> Result<Value, Refusal> {
    let customizations = &spec.profile_customizations;
    let mut arguments = Thresholds::of(customizations)?.arguments(&["MetricResource"]);
    arguments["evictableNamespaces"] = json!({"exclude": excluded(spec, surroundings)});
    arguments["metricsUtilization"] = json!({
        "source": "Prometheus",
        "prometheus": {"query": utilization::query(&customizations.dev_actual_utilization_profile, surroundings)?},
    });
    // The plugin stops after one pod per node unless it has a limit of its own.
    if let Some(node) = limits.node {
        arguments["evictionLimits"] = json!({"node": node});
    }
    let name = KUBEVIRT[0];
    Ok(assemble(name, &[], &[("LowNodeUtilization", arguments)], evictor(name, spec)))
}

fn assemble(name: &str, deschedule: &[(&str, Value)], balance: &[(&str, Value)], evictor: Value) -> Value {
    let configured = deschedule.iter().chain(balance).cloned().chain([("DefaultEvictor", evictor)]);
    let configured: Vec<Value> = configured.map(|(name, args)| json!({"name": name, "args": args})).collect();
    let mut plugins = json!({"filter": {"enabled": ["DefaultEvictor"]}});
    for (point, of_point) in [("deschedule", deschedule), ("balance", balance)] {
        if !of_point.is_empty() {
            let enabled: Vec<&str> = of_point.iter().map(|(name, _)| *name).collect();
            plugins[point] = json!({"enabled": enabled});
        }
    }
    json!({"name": name, "pluginConfig": configured, "plugins": plugins})
}

/// Which pods may be evicted at all. Local disks and volume claims do not keep a virtual machine from moving.
fn evictor(name: &str, spec: &Spec) -> Value {
    let has = |name: &str| spec.profiles.iter().any(|listed| listed == name);
    let is_kubevirt = KUBEVIRT.contains(&name);
    let mut evictor =
        if is_kubevirt { json!({"noEvictionPolicy": "Mandatory", "podProtections": {}}) } else { json!({}) };
    if is_kubevirt || has(LOCAL_STORAGE) {
        evictor["evictLocalStoragePods"] = true.into();
    }
    if !is_kubevirt && !has(PVC) {
        evictor["ignorePvcPods"] = true.into();
    }
    let customizations = &spec.profile_customizations;
    if let Some(value) = customizations.threshold_priority {
        evictor["priorityThreshold"] = json!({"value": value});
    } else if !customizations.threshold_priority_class_name.is_empty() {
        evictor["priorityThreshold"] = json!({"name": customizations.threshold_priority_class_name});
    }
    evictor
}

fn namespaces(spec: &Spec, surroundings: &Surroundings) -> Value {
    let included = &spec.profile_customizations.namespaces.included;
    match included.is_empty() {
        true => json!({"exclude": excluded(spec, surroundings)}),
        false => json!({"include": included}),
    }
}

fn excluded(spec: &Spec, surroundings: &Surroundings) -> Vec<String> {
    let more = &spec.profile_customizations.namespaces.excluded;
    let more = more.iter().filter(|name| !surroundings.protected.contains(name));
    surroundings.protected.iter().chain(more).cloned().collect()
}
