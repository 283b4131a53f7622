//! The settings in HyperConverged: memory overcommitment, and page merging.

use api::virt_platform_config::PlanInput;
use serde_json::{Value, json};

use super::Options;
use crate::{Change, Facts, Intent, fields::Path, hyper_converged, intent::Weight, kind::HYPER_CONVERGED};

const RATIO: &str = "higherWorkloadDensity.memoryOvercommitPercentage";
const KSM: &str = "ksmConfiguration";
const KSM_SELECTOR: &str = "ksmConfiguration.nodeLabelSelector";

pub(super) fn plan(options: &Options, facts: &Facts) -> Intent {
    let version = facts.version(&HYPER_CONVERGED).unwrap_or("v1beta1");
    let target = hyper_converged::reference(facts);

    let mut fields = json!({
        "apiVersion": HYPER_CONVERGED.api_version(version),
        "kind": HYPER_CONVERGED.kind,
        "metadata": {"name": target.name, "namespace": target.namespace},
    });
    set(&mut fields, &hyper_converged::path(version, RATIO), options.ratio.into());
    let mut message = format!(
        "HyperConverged '{}' will be configured with memoryOvercommitPercentage={}",
        target.name, options.ratio
    );
    let mut managed = vec![managed_ratio(version)];
    let mut remove = Vec::new();
    match &options.ksm {
        Some(selector) => {
            set(&mut fields, &hyper_converged::path(version, KSM), json!({"nodeLabelSelector": selector}));
            managed.push(managed_ksm(version));
            message += " and KSM enabled";
        }
        // Without a selector it is off. If the field were omitted, somebody else's value would stay.
        None => {
            let selector = Path::dotted(&hyper_converged::path(version, KSM_SELECTOR));
            let live = facts.object(&target);
            if live.and_then(|live| selector.find(live)).is_some_and(|selector| !selector.is_null()) {
                message += " and KSM disabled";
            }
            remove.push(selector);
        }
    }
    Intent {
        name: "configure-higher-density".into(),
        target,
        version,
        change: Change::Apply { fields, remove },
        managed: managed.into_iter().map(Into::into).collect(),
        message,
        why: "overcommitted memory and merged pages let more virtual machines share a node",
        inputs: inputs(options, facts),
        weight: Weight::Platform,
        restores: None,
    }
}

/// The option that sets a field, in whichever version.
pub(super) fn option_for(field: &Path, now: Option<&Value>) -> Option<(&'static str, Value)> {
    let is = |setting: &str| {
        ["v1beta1", "v1"].iter().any(|version| *field == Path::dotted(&hyper_converged::path(version, setting)))
    };
    match now {
        Some(ratio) if is(RATIO) => Some(("virtHigherDensity.memoryToRequestRatio", ratio.clone())),
        Some(selector) if is(KSM_SELECTOR) => {
            Some(("virtHigherDensity.ksmConfiguration.nodeLabelSelector", selector.clone()))
        }
        None if is(KSM_SELECTOR) => Some(("virtHigherDensity.ksmConfiguration.enabled", false.into())),
        _ => None,
    }
}

/// Settings that are managed at the profile's defaults are inputs too: if somebody else changes one, a person should review it.
/// Settings that the user fixed in the options are no inputs.
fn inputs(options: &Options, facts: &Facts) -> Vec<PlanInput> {
    let ratio = (!options.ratio_is_fixed).then(|| hyper_converged::input(facts, RATIO).1);
    let ksm = (!options.ksm_is_fixed).then(|| hyper_converged::input(facts, KSM).1);
    ratio.into_iter().chain(ksm).collect()
}

pub(super) fn setting_changed(before: &PlanInput, after: &PlanInput) -> String {
    let parsed = |input: &PlanInput| input.value.as_deref().and_then(|value| serde_json::from_str::<Value>(value).ok());
    let (before_value, after_value) = (parsed(before), parsed(after));
    if before.path.ends_with(KSM) {
        let selects = |value: &Option<Value>| value.as_ref().is_some_and(|ksm| !ksm["nodeLabelSelector"].is_null());
        return match (selects(&before_value), selects(&after_value)) {
            (true, true) => "HCO KSM configuration changed (other nodes are selected)".to_owned(),
            (was, now) => format!("HCO KSM configuration changed (was {was}, now {now})"),
        };
    }
    let text = |value: Option<Value>| value.map_or_else(|| "unset".to_owned(), |value| value.to_string());
    format!("HCO memoryOvercommitPercentage changed ({} -> {})", text(before_value), text(after_value))
}

/// The managed fields, in the served version.
fn managed_ratio(version: &str) -> &'static str {
    match version {
        "v1beta1" => "spec.higherWorkloadDensity.memoryOvercommitPercentage",
        _ => "spec.virtualization.higherWorkloadDensity.memoryOvercommitPercentage",
    }
}

fn managed_ksm(version: &str) -> &'static str {
    match version {
        "v1beta1" => "spec.ksmConfiguration",
        _ => "spec.virtualization.ksmConfiguration",
    }
}

/// Sets a field by its dotted path, and creates the maps on the way.
fn set(object: &mut Value, path: &str, value: Value) {
    let slot = path.split('.').fold(object, |object, name| &mut object[name]);
    *slot = value;
}
