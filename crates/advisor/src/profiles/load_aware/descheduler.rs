//! The configuration of the descheduler: its profile, its interval, and how many virtual machines it may move at once.

use api::virt_platform_config::PlanInput;
use serde_json::{Value, json};

use super::{Options, operator, profile::ABOUT};
use crate::{
    Access, Change, Draft, Facts, Intent, ObjectRef, Query, field_manager, fields, hyper_converged,
    intent::Weight,
    kind::KUBE_DESCHEDULER,
    kube_descheduler::{Exclusion, LONG_LIFECYCLE, Release},
    schema,
};

pub(super) const ITEM: &str = "enable-load-aware-descheduling";

/// Profiles of the administrator that are compatible with this one.
const PRESERVED: [&str; 2] = ["AffinityAndTaints", "SoftTopologyAndDuplicates"];

pub(super) fn target() -> ObjectRef {
    ObjectRef::namespaced(&KUBE_DESCHEDULER, "openshift-kube-descheduler-operator", "cluster")
}

pub(super) fn access() -> Vec<Access> {
    let own =
        [Access::Create(target()), Access::Delete(target()), Access::Read(ObjectRef::definition(&KUBE_DESCHEDULER))];
    own.into_iter().chain(operator::access()).collect()
}

pub(super) fn wants(facts: &Facts) -> Vec<Query> {
    let own = [Query::Object(target()), Query::Object(ObjectRef::definition(&KUBE_DESCHEDULER))];
    own.into_iter().chain(operator::wants(facts)).collect()
}

/// How releases measure load, where they differ. The newest measures processor and memory.
const WHY: &str = "the descheduler moves virtual machines away from busy nodes, as many at a time as may migrate";
const WHY_PROCESSOR: &str =
    "the descheduler moves virtual machines away from nodes whose processor is busy, as many at a time as may migrate";
const WHY_REQUESTS: &str = "the descheduler evens out what is requested of nodes; it does not see how busy they are";

const MOST_STAY: &str = "The descheduler of OpenShift 4.17 has no profile for virtual machines. LongLifecycle looks at requests \
                         and not at load, and leaves pods with persistent volumes or local storage where they are, so most \
                         virtual machines will not move. Upgrade to OpenShift 4.18 or newer, or annotate those that shall \
                         move with descheduler.alpha.kubernetes.io/evict.";

pub(super) fn plan(options: &Options, facts: &Facts) -> Draft {
    let version = facts.version(&KUBE_DESCHEDULER).unwrap_or("v1");
    let live = facts.object(&target());
    let schema = schema::spec(facts, &KUBE_DESCHEDULER, version);
    let release = Release::of(schema);
    let profile = release.profile();

    let mut spec = json!({
        "deschedulingIntervalSeconds": options.interval_seconds,
        "mode": options.mode,
        "profiles": profiles(live, profile),
    });
    let mut managed = vec!["spec.deschedulingIntervalSeconds", "spec.mode", "spec.profiles"];
    let (mut inputs, mut remove, mut notes) =
        (Vec::new(), Vec::new(), operator::note(facts).into_iter().collect::<Vec<_>>());
    if profile == LONG_LIFECYCLE {
        notes.push(MOST_STAY.to_owned());
    } else {
        let (limits, derived_from) = limits(options, facts, has(schema, "evictionLimits.node"));
        let customizations = customizations(options, release, schema);
        remove = refused_beside(&customizations, release);
        spec["profileCustomizations"] = customizations;
        spec["evictionLimits"] = limits;
        managed.extend(["spec.profileCustomizations", "spec.evictionLimits"]);
        notes.extend(limit_notes(&derived_from));
        inputs = derived_from;
    }
    if let Some(state) = management_state(live, &managed) {
        spec["managementState"] = state;
    }
    let intent = Intent {
        name: ITEM.into(),
        target: target(),
        version,
        change: Change::Apply {
            fields: json!({
                "apiVersion": KUBE_DESCHEDULER.api_version(version),
                "kind": KUBE_DESCHEDULER.kind,
                "metadata": {"name": target().name, "namespace": target().namespace},
                "spec": spec,
            }),
            remove,
        },
        managed: managed.into_iter().map(Into::into).collect(),
        message: format!("KubeDescheduler 'cluster' will be configured with profile '{profile}'"),
        why: match release {
            Release::V4_17 => WHY_REQUESTS,
            Release::V4_18 | Release::V4_19 | Release::V4_20 => WHY_PROCESSOR,
            Release::V4_21 | Release::V5_1 => WHY,
        },
        inputs,
        weight: Weight::Component,
        restores: None,
    };
    Draft { intents: vec![intent], notes, ..Draft::default() }
}

/// The option that sets a field.
pub(super) fn option_for(field: &fields::Path, now: Option<&Value>) -> Option<(&'static str, Value)> {
    let option = match field.to_string().as_str() {
        "spec.deschedulingIntervalSeconds" => "loadAware.deschedulingIntervalSeconds",
        "spec.mode" => "loadAware.mode",
        "spec.profileCustomizations.devDeviationThresholds" => "loadAware.devDeviationThresholds",
        "spec.evictionLimits.total" => "loadAware.evictionLimitTotal",
        "spec.evictionLimits.node" => "loadAware.evictionLimitNode",
        _ => return None,
    };
    Some((option, now?.clone()))
}

fn has(schema: Option<&Value>, path: &str) -> bool {
    schema.is_some_and(|schema| schema::field(schema, path).is_some())
}

/// The customizations of the profile that the installed version supports.
fn customizations(options: &Options, release: Release, schema: Option<&Value>) -> Value {
    let mut wanted = vec![
        ("devDeviationThresholds", json!(options.thresholds)),
        ("devEnableEvictionsInBackground", json!(true)),
        ("devEnableSoftTainter", json!(true)),
    ];
    // Without a metric, this release compares requests. Later releases have a default metric.
    if release == Release::V4_18 {
        wanted.push(("devActualUtilizationProfile", json!("PrometheusCPUCombined")));
    }
    let known = |name: &str| schema.is_none() || has(schema, &format!("profileCustomizations.{name}"));
    let known = wanted.into_iter().filter(|(name, _)| known(name)).map(|(name, value)| (name.to_owned(), value));
    Value::Object(known.collect())
}

/// The existing customizations that exclude this profile's. The descheduler's operator would keep its old policy without any
/// message.
fn refused_beside(customizations: &Value, release: Release) -> Vec<fields::Path> {
    let ours = customizations.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let rivals = ours.flat_map(|name| Exclusion::of(release).filter_map(|exclusion| exclusion.counterpart(name)));
    rivals.map(|rival| fields::Path::dotted(&format!("spec.profileCustomizations.{rival}"))).collect()
}

/// This profile last, after compatible ones of the administrator, without duplicates, which the descheduler's operator refuses.
fn profiles(live: Option<&Value>, ours: &str) -> Vec<String> {
    let existing = live.and_then(|live| live.pointer("/spec/profiles")).and_then(Value::as_array);
    let mut profiles: Vec<String> = Vec::new();
    for name in existing.into_iter().flatten().filter_map(Value::as_str).filter(|name| PRESERVED.contains(name)) {
        if !profiles.iter().any(|known| known == name) {
            profiles.push(name.to_owned());
        }
    }
    profiles.push(ours.to_owned());
    profiles
}

/// Set on creation, because the descheduler's operator cannot update an object without it. Kept while the operator owns it, because
/// an apply without it would remove it. An administrator's value stays.
fn management_state(live: Option<&Value>, managed: &[&str]) -> Option<Value> {
    let Some(live) = live else { return Some("Managed".into()) };
    let path = fields::Path::dotted("spec.managementState");
    let us = field_manager::of_profile(&ABOUT, Some(live), managed);
    let ours = fields::applied_by(live, &us).contains(&path);
    path.find(live).filter(|_| ours).cloned()
}

/// A limit that is derived from a setting of HyperConverged, and the default of that setting.
struct Limit {
    setting: &'static str,
    default: i64,
}

const TOTAL: Limit = Limit { setting: "liveMigrationConfig.parallelMigrationsPerCluster", default: 5 };
const PER_NODE: Limit = Limit { setting: "liveMigrationConfig.parallelOutboundMigrationsPerNode", default: 2 };

impl Limit {
    fn derive(&self, value: Option<&Value>) -> i64 {
        scaled(value.and_then(Value::as_i64).filter(|value| *value > 0).unwrap_or(self.default))
    }

    /// The note about a setting from which nothing can be derived.
    fn note(&self, input: &PlanInput) -> Option<String> {
        let value = input.value.as_deref()?;
        let is_usable = value.parse::<i64>().is_ok_and(|number| number > 0);
        let (path, default) = (&input.path, self.default);
        (!is_usable).then(|| {
            format!(
                "{path} of {} is {value}, which limits nothing that evictions could follow: the plan assumes its default {default}. Set \
                 it to a number from 1 on, or fix the limit in spec.options",
                input.source
            )
        })
    }
}

/// Each limit is either fixed by the user, or derived from the limit of parallel migrations.
fn limits(options: &Options, facts: &Facts, has_node_limit: bool) -> (Value, Vec<PlanInput>) {
    let mut inputs = Vec::new();
    let mut value = |fixed: Option<i32>, limit: &Limit| match fixed {
        Some(fixed) => i64::from(fixed),
        None => {
            let (value, input) = hyper_converged::input(facts, limit.setting);
            inputs.push(input);
            limit.derive(value.as_ref())
        }
    };
    let mut limits = json!({"total": value(options.limit_total, &TOTAL)});
    if has_node_limit {
        limits["node"] = value(options.limit_node, &PER_NODE).into();
    }
    (limits, inputs)
}

/// The notes about settings from which no limit can be derived.
fn limit_notes(inputs: &[PlanInput]) -> impl Iterator<Item = String> + '_ {
    inputs.iter().filter_map(|input| limit_of(input).note(input))
}

fn limit_of(input: &PlanInput) -> &'static Limit {
    if input.path.ends_with(TOTAL.setting) { &TOTAL } else { &PER_NODE }
}

/// The text about changed limits. It names the limits, not the settings of HyperConverged.
pub(super) fn limit_changed(before: &PlanInput, after: &PlanInput) -> String {
    let limit = limit_of(before);
    let derived = |input: &PlanInput| {
        let value = input.value.as_deref().and_then(|value| serde_json::from_str::<Value>(value).ok());
        limit.derive(value.as_ref())
    };
    let name = limit.setting.rsplit('.').next().unwrap_or_default();
    format!("HCO {name} changed (scaled {} -> {})", derived(before), derived(after))
}

/// Four fifths above ten, to leave room for migrations that people start.
pub(super) fn scaled(value: i64) -> i64 {
    if value < 10 { value } else { value - (value - 6) / 5 }
}
