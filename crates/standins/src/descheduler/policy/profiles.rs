//! The profiles of the operator, and the descheduler's plugins of each.

use advisor::kube_descheduler::{DEV_RELIEVE_AND_MIGRATE, LONG_LIFECYCLE, PolicyLimits, RELIEVE_AND_MIGRATE, Release};
use serde_json::{Value, json};

use super::{PolicyContext, Thresholds, utilization};
use crate::descheduler::{PolicyError, Spec};

/// The profile for virtual machines: its name and its former name.
pub(super) const KUBEVIRT: [&str; 2] = [RELIEVE_AND_MIGRATE, DEV_RELIEVE_AND_MIGRATE];

const AFFINITY: &str = "AffinityAndTaints";
const TOPOLOGY: &str = "TopologyAndDuplicates";
const SOFT_TOPOLOGY: &str = "SoftTopologyAndDuplicates";
const LONG: [&str; 2] = [LONG_LIFECYCLE, "DevPreviewLongLifecycle"];
const LIFECYCLE: &str = "LifecycleAndUtilization";
const COMPACT: &str = "CompactAndScale";
const LOCAL_STORAGE: &str = "EvictPodsWithLocalStorage";
const PVC: &str = "EvictPodsWithPVC";

const EXCLUSIVE: [(&str, &str); 16] = [
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
    (SOFT_TOPOLOGY, TOPOLOGY),
    (COMPACT, LIFECYCLE),
    (COMPACT, LONG[0]),
    (COMPACT, LONG[1]),
    (COMPACT, TOPOLOGY),
];

/// Whether these profiles exist and can be combined.
pub(super) fn check(profiles: &[String], release: Release) -> Result<(), PolicyError> {
    let known = [AFFINITY, TOPOLOGY, SOFT_TOPOLOGY, LIFECYCLE, COMPACT, LOCAL_STORAGE, PVC, LONG[0], LONG[1]];
    let is_known = |name: &str| match name {
        RELIEVE_AND_MIGRATE => release >= Release::V4_20,
        DEV_RELIEVE_AND_MIGRATE => release >= Release::V4_18,
        name => known.contains(&name),
    };
    let has = |name: &str| profiles.iter().any(|listed| listed == name);
    if let Some(name) = profiles.iter().find(|name| !is_known(name)) {
        return Err(PolicyError::UnknownProfile(name.clone()));
    }
    if profiles.iter().enumerate().any(|(at, name)| profiles[..at].contains(name)) {
        return Err(PolicyError::Duplicate);
    }
    if let Some((one, other)) = EXCLUSIVE.into_iter().find(|(one, other)| has(one) && has(other)) {
        return Err(PolicyError::Exclusive(one, other));
    }
    match [LIFECYCLE, COMPACT].into_iter().find(|name| has(name)) {
        Some(name) => Err(PolicyError::Unsupported(name.to_owned())),
        None => Ok(()),
    }
}

/// The `profiles` of the policy, in the order of the spec.
pub(super) fn render(spec: &Spec, limits: PolicyLimits, context: &PolicyContext) -> Result<Vec<Value>, PolicyError> {
    let mut profiles = Vec::new();
    for name in &spec.profiles {
        profiles.extend(profile(name, spec, limits, context)?);
    }
    Ok(profiles)
}

fn profile(
    name: &str,
    spec: &Spec,
    limits: PolicyLimits,
    context: &PolicyContext,
) -> Result<Option<Value>, PolicyError> {
    let namespaces = namespaces(spec, context);
    Ok(Some(match name {
        _ if KUBEVIRT.contains(&name) => kubevirt(name, spec, limits, context)?,
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
            assemble(name, &plugins, &[], evictor(spec))
        }
        TOPOLOGY | SOFT_TOPOLOGY => {
            let constraints: &[&str] =
                if name == TOPOLOGY { &["DoNotSchedule"] } else { &["DoNotSchedule", "ScheduleAnyway"] };
            let spread = json!({"namespaces": namespaces, "constraints": constraints});
            let plugins = [
                ("RemovePodsViolatingTopologySpreadConstraint", spread),
                ("RemoveDuplicates", json!({"namespaces": namespaces})),
            ];
            assemble(name, &[], &plugins, evictor(spec))
        }
        _ if LONG.contains(&name) => {
            let wanted = spec.profile_customizations.dev_low_node_utilization_thresholds.as_deref().unwrap_or_default();
            let query = utilization::query(spec, false, context)?;
            let balance = low_node_utilization(Thresholds::by_name(wanted)?, query, limits.plugin, spec, context);
            let restarts =
                json!({"namespaces": namespaces, "podRestartThreshold": 100, "includingInitContainers": true});
            let restarts = [("RemovePodsHavingTooManyRestarts", restarts)];
            assemble(LONG_LIFECYCLE, &restarts, &[balance], evictor(spec))
        }
        // The remaining profiles only change which pods others may evict.
        _ => return Ok(None),
    }))
}

/// Since 4.20 it has its current name, whichever of the two the spec has.
fn kubevirt(name: &str, spec: &Spec, limits: PolicyLimits, context: &PolicyContext) -> Result<Value, PolicyError> {
    let release = context.release;
    let name = if release >= Release::V4_20 { RELIEVE_AND_MIGRATE } else { name };
    let thresholds = Thresholds::of(&spec.profile_customizations, release)?;
    let query = utilization::query(spec, true, context)?;
    let balance = low_node_utilization(thresholds, query, limits.plugin, spec, context);
    // A virtual machine can migrate with local disks and volume claims.
    let mut evictor = json!({"evictLocalStoragePods": true});
    if release >= Release::V4_20 {
        evictor["noEvictionPolicy"] = "Mandatory".into();
        evictor["podProtections"] = json!({});
    }
    set_priority(&mut evictor, spec);
    Ok(assemble(name, &[], &[balance], evictor))
}

/// Compares the result of the query, or without one the requests of pods. Without a limit of its own the plugin evicts one
/// pod per node.
fn low_node_utilization(
    thresholds: Thresholds,
    query: Option<String>,
    limit: Option<u64>,
    spec: &Spec,
    context: &PolicyContext,
) -> (&'static str, Value) {
    let resources: &[&str] = if query.is_some() { &["MetricResource"] } else { &["cpu", "memory", "pods"] };
    let mut arguments = thresholds.arguments(resources);
    arguments["evictableNamespaces"] = json!({"exclude": excluded(spec, context)});
    if let Some(query) = query {
        arguments["metricsUtilization"] = json!({"source": "Prometheus", "prometheus": {"query": query}});
    }
    if let Some(node) = limit {
        arguments["evictionLimits"] = json!({"node": node});
    }
    ("LowNodeUtilization", arguments)
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

/// The evictor of profiles that are not for virtual machines.
fn evictor(spec: &Spec) -> Value {
    let has = |name: &str| spec.profiles.iter().any(|listed| listed == name);
    let mut evictor = json!({});
    if has(LOCAL_STORAGE) {
        evictor["evictLocalStoragePods"] = true.into();
    }
    if !has(PVC) {
        evictor["ignorePvcPods"] = true.into();
    }
    set_priority(&mut evictor, spec);
    evictor
}

/// Sets the priority from which on pods are not evicted.
fn set_priority(evictor: &mut Value, spec: &Spec) {
    let customizations = &spec.profile_customizations;
    if let Some(value) = customizations.threshold_priority {
        evictor["priorityThreshold"] = json!({"value": value});
    } else if !customizations.threshold_priority_class_name.is_empty() {
        evictor["priorityThreshold"] = json!({"name": customizations.threshold_priority_class_name});
    }
}

fn namespaces(spec: &Spec, context: &PolicyContext) -> Value {
    let included = &spec.profile_customizations.namespaces.included;
    match included.is_empty() {
        true => json!({"exclude": excluded(spec, context)}),
        false => json!({"include": included}),
    }
}

/// A namespace that is protected and excluded is listed twice.
fn excluded(spec: &Spec, context: &PolicyContext) -> Vec<String> {
    let more = &spec.profile_customizations.namespaces.excluded;
    context.protected.iter().chain(more).cloned().collect()
}
